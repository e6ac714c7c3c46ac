#include "core/report/uncertainty.hpp"

namespace tidemark {

void widen(Estimate& e, const Architecture&, const TrainingJob&) {
  for (Range* r : {&e.allocated, &e.reserved}) {
    r->low = r->expected - r->expected / 50;
    r->high = r->expected + r->expected / 50;
  }
  e.device = e.reserved;
}

}  // namespace tidemark
