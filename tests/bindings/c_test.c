/* The C header from C: a question and its answer, trouble as data, what came is given back. */
#include <stdio.h>
#include <string.h>

#include "core/bindings/c/tidemark.h"

static int failures = 0;

static void check(const char* what, int holds) {
  if (holds) return;
  printf("FAILED: %s\n", what);
  ++failures;
}

static int answers(const char* request, const char* words) {
  char* answer = tidemark_handle(request);
  const int found = answer != NULL && strstr(answer, words) != NULL;
  tidemark_free(answer);
  return found;
}

int main(void) {
  char* read;
  check("an estimate", answers("{\"model\": \"llama-3.2-1b\", \"gpu\": \"4090\"}", "\"allocated\""));
  check("a verdict", answers("{\"model\": \"llama-2-70b\", \"gpu\": \"4090\"}", "\"does_not_fit\""));
  check("another verb", answers("{\"verb\": \"catalog\", \"list\": \"gpus\"}", "RTX 4090"));
  check("an unknown model", answers("{\"model\": \"no such model\"}", "UNKNOWN_MODEL"));
  check("no JSON", answers("{", "\"error\""));
  check("nothing", answers(NULL, "\"error\""));
  read = tidemark_import("{\"files\": [{\"name\": \"a.yaml\", \"text\": \"base_model: gpt2\\nsequence_len: 512\\nmicro_batch_size: 2\\n\"}]}");
  check("files", read != NULL && strstr(read, "\"sequence_length\":512") != NULL);
  tidemark_free(read);
  tidemark_free(NULL);
  check("the version", strlen(tidemark_version()) >= 5);
  printf("%d failed\n", failures);
  return failures != 0;
}
