#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/answer/estimate.hpp"
#include "core/fit/setting.hpp"
#include "core/job/training_job.hpp"
#include "core/model/architecture.hpp"
#include "core/step/simulation.hpp"

namespace tidemark {

/// What a search needs to know of one job.
struct Figures {
  bool known = false;  ///< false when the engine does not model this job or its byte counts would leave 64 bits
  Range allocated;     ///< torch.cuda.max_memory_allocated
  Range reserved;      ///< torch.cuda.max_memory_reserved; zero on the quick path
  Bytes host = 0;      ///< host memory of paged and offloaded state
  Phase phase = Phase::kForward;  ///< where the peak falls; kForward on the quick path
  Bytes beside = 0;     ///< of the card, more than the job that is asked about takes beside itself: NCCL's buffers
  std::string refusal;  ///< why it does not run though it may fit: a length that the model has no positions for
};

/// A request read anew with settings written into it: defaults that follow them, and what a framework refuses, show
/// there alone.
struct Afresh {
  std::function<bool(const std::vector<Setting>& settings)> takes;  ///< whether it is a request still
  /// What it is answered by; unknown where it is refused. `job` is what a search takes it for.
  std::function<Figures(const std::vector<Setting>& settings, const TrainingJob& job)> figures;
};

/// Peaks of one model under many jobs, each computed once.
class Peaks {
 public:
  explicit Peaks(const Architecture& architecture) : architecture_(architecture) {}
  Peaks(const Peaks&) = delete;  // what reads requests anew knows this one
  Peaks& operator=(const Peaks&) = delete;

  /// From each stretch's own extent, without the allocator: never above full() in its expected value, and many times
  /// faster.
  const Figures& quick(const TrainingJob& job);

  /// What `estimate` answers, to the byte.
  const Figures& full(const TrainingJob& job);

  /// What whoever sends the request with these settings gets: that of `job` where nobody reads requests anew.
  Figures afresh(const std::vector<Setting>& settings, const TrainingJob& job) {
    return afresh_.figures ? afresh_.figures(settings, job) : full(job);
  }
  /// Whether the request takes them. What it does not take is no job whose step can be recorded.
  bool takes(const std::vector<Setting>& settings) const { return !afresh_.takes || afresh_.takes(settings); }
  void read_anew_by(Afresh afresh) { afresh_ = std::move(afresh); }

  const Architecture& architecture() const { return architecture_; }
  /// How many different jobs were computed so far.
  Count quick_count() const { return static_cast<Count>(quick_.size()); }
  Count full_count() const { return static_cast<Count>(full_.size()); }

 private:
  /// What has been computed. A list, searched by a digest of the job: an ordered map of jobs is 4 KB of WebAssembly.
  class Known {
   public:
    /// The figures of that job, or null where it is new.
    const Figures* find(const TrainingJob& key) const;
    const Figures& add(const TrainingJob& key, const Figures& figures);
    std::size_t size() const { return digests_.size(); }

   private:
    struct Entry {
      TrainingJob key;
      Figures figures;
    };
    std::vector<std::uint64_t> digests_;
    std::vector<std::unique_ptr<Entry>> entries_;  // in the same order
  };

  static TrainingJob key_of(const TrainingJob& job);
  const Figures& look_up(Known& known, const TrainingJob& job, bool allocator);
  Figures compute(const TrainingJob& job, const TrainingJob& key, bool allocator);

  const Architecture& architecture_;
  Afresh afresh_;
  Known quick_, full_;
  Simulation last_;  // the step that was recorded last: a full peak is often asked for right after the quick one
  TrainingJob last_key_;
};

}  // namespace tidemark
