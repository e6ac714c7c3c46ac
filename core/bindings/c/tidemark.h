/* Tidemark: the peak GPU memory of a training job, before it is launched.
 *
 * A question is JSON (docs/request.schema.json), an answer is JSON (core/answer/answer.schema.json). The catalog of models and
 * cards is part of the library: it opens no files, needs no network and prints nothing. All functions may be called from
 * several threads at once.
 */
#ifndef TIDEMARK_H
#define TIDEMARK_H

#if defined(_WIN32)
#define TIDEMARK_API __declspec(dllexport)
#else
#define TIDEMARK_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The answer to a request, any verb: {"model": "llama-3.2-1b", "gpu": "4090"}. Never fails: trouble stands in the answer's
 * "issues". UTF-8, ended by a zero; given back with tidemark_free. Null only where there is no memory. */
TIDEMARK_API char* tidemark_handle(const char* request);

/* Files of other tools: {"files": [{"name": "train.yaml", "text": "..."}]} gives what `tidemark import --json` prints and, as
 * "job", the request that they spell. Texts alone; nothing in them is run. */
TIDEMARK_API char* tidemark_import(const char* files);

/* Gives a text back that one of the above returned. Null is no error. */
TIDEMARK_API void tidemark_free(char* text);

/* "0.1.0". */
TIDEMARK_API const char* tidemark_version(void);

#ifdef __cplusplus
}
#endif

#endif
