#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "core/tape/tensor.hpp"
#include "core/units/bytes.hpp"
#include "core/units/category.hpp"

namespace tidemark {

/// A place of the program that allocates: the unit of the breakdown.
struct Site {
  std::int16_t scope = 0;  ///< index into Record::scopes()
  bool backward = false;   ///< made while gradients flow
  Dtype dtype = Dtype::kFp32;
  Category category = Category::kActivations;
  std::int32_t recategorised = -1;  ///< the site of the same place in the category that it was given last
  const char* op = "";              ///< "mm", "silu", …
  Count numel = 0;                  ///< shape.numel(), beside what else every allocation compares
  Shape shape;                      ///< of one storage
};

/// A module of the model and the code that it mirrors.
struct ScopeName {
  const char* module = "";  ///< path inside the layer or the model: "self_attn.q_proj"
  const char* source = "";  ///< "transformers 5.12 models/llama/modeling_llama.py: LlamaAttention.forward"
};

/// A queue of kernels on the device (a CUDA stream): its blocks of memory serve no other stream.
using Stream = std::int16_t;
inline constexpr Stream kMainStream = 0;

/// One allocation's life.
struct Storage {
  Bytes bytes = 0;              ///< as requested, before rounding
  std::int32_t references = 0;  ///< bodies of tensors, and one for what outlives the step
  std::int32_t site = 0;
  Stream stream = kMainStream;  ///< that was current when it was allocated
  std::uint32_t used_on = 0;    ///< further streams that work on it, one bit each (torch.Tensor.record_stream)
  bool guarded = false;   ///< there may be none at other sizes: where it has no bytes, its life is noted all the same
  std::int16_t card = 0;  ///< of those that one process uses; on others than the recorded one it takes no bytes
};

/// Results of operations that one pass leaves for the next.
struct KeptResults {
  std::vector<Tensor> results;  ///< in the order of their making; undefined once they were taken again
  std::size_t next = 0;         ///< the one that is taken again next
  bool taken_again = false;     ///< the next pass is under way
};

/// What happened to memory, in time order.
struct Event {
  enum class Kind : std::uint8_t {
    kAllocate,    ///< of a storage
    kFree,        ///< of a storage: its memory may be given away at once
    kFreeAfter,   ///< of a storage that other streams use: its memory waits for them
    kStreamDone,  ///< a stream has finished its work: memory that waited for it alone is free
  };
  Kind kind = Kind::kAllocate;
  std::int32_t subject = 0;  ///< index into Record::storages(), or the stream
  bool allocates() const { return kind == Kind::kAllocate; }
  bool frees() const { return kind == Kind::kFree || kind == Kind::kFreeAfter; }
  bool operator==(const Event& other) const { return kind == other.kind && subject == other.subject; }
};

/// A stretch of events that belongs to one phase and one layer instance.
struct Segment {
  Phase phase = Phase::kForward;
  std::int16_t instance = -1;  ///< −1 before the first and after the last layer
  std::uint32_t begin = 0, end = 0;
};

/// What a step allocates and frees, where in the program and when.
class Record {
 public:
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  // -- allocation ------------------------------------------------------------------------------------------------
  Tensor allocate(const Shape& shape, Dtype dtype, const char* op) { return allocate(shape, dtype, op, false); }
  /// A kernel's scratch: allocated and freed at once.
  void scratch(std::initializer_list<std::pair<Bytes, const char*>> sizes);
  /// A tensor on a buffer of the model, which is counted on its own.
  Tensor part_of_buffer(const Shape& shape, Dtype dtype);
  /// A tensor that stays on the device and is no parameter (rope tables, quantisation constants).
  void buffer(const char* name, Bytes bytes, Category category = Category::kBuffers);
  /// One behind all that the program asks for: it is there once however often the layer runs.
  void further_buffer(const char* name, Bytes bytes, Category category);
  void set_category(const Tensor& tensor, Category category);
  /// A tensor that was there before the step and is there after it.
  Tensor standing(const Shape& shape, Dtype dtype, const char* name, Category category);

  // -- streams ---------------------------------------------------------------------------------------------------
  /// torch.cuda.stream: what is allocated from here on belongs to this one (at most 32 of them).
  void set_stream(Stream stream) { stream_ = stream; }
  Stream stream() const { return stream_; }
  /// torch.Tensor.record_stream: when the tensor is freed, its memory waits until that stream has finished.
  void record_stream(const Tensor& tensor, Stream stream);
  /// The host has seen that the stream finished all that was queued on it.
  void stream_done(Stream stream) { note(Event::Kind::kStreamDone, stream); }

  // -- cards -----------------------------------------------------------------------------------------------------
  /// One process uses several cards (device_map): only what lies on this one is counted.
  void record_card(std::int16_t card) { recorded_card_ = card; }
  /// Operations run on this card from here on.
  void go_to_card(std::int16_t card) { card_ = card; }
  std::int16_t card() const { return card_; }
  std::int16_t card_of(const Tensor& x) const {
    return x.storage() < 0 ? card_ : storages_[static_cast<std::size_t>(x.storage())].card;
  }
  bool is_elsewhere() const { return card_ != recorded_card_; }

  // -- places ----------------------------------------------------------------------------------------------------
  std::int16_t enter(const char* module, const char* source);
  void leave(std::int16_t previous) { scope_ = previous; }
  std::int16_t scope() const { return scope_; }
  void set_default_category(Category category) { category_ = category; }
  Category default_category() const { return category_; }
  void begin_segment(Phase phase, std::int16_t instance);
  /// The next begin_segment opens a new one even when phase and instance are the same.
  void break_segment() { force_segment_ = true; }
  std::int16_t instance() const { return instance_; }
  Phase phase() const { return phase_; }
  /// Nothing is allocated: a recomputation went as far as it had to (torch.utils.checkpoint's early stop).
  bool stopped() const { return stopped_; }
  /// Nothing is allocated or recorded until this is taken back: parameters are declared of a part that does not run.
  void set_stopped(bool stopped) { stopped_ = stopped; }
  /// Likewise, of a part that the step's own code does not call: nothing that follows calls will see it.
  bool declares_alone() const { return declares_alone_; }
  void set_declares_alone(bool alone) { declares_alone_ = alone; }

  // -- the record ------------------------------------------------------------------------------------------------
  const std::vector<Event>& events() const { return events_; }
  const std::vector<Storage>& storages() const { return storages_; }
  const std::vector<Segment>& segments() const { return segments_; }
  const std::vector<Site>& sites() const { return sites_; }
  const std::vector<ScopeName>& scopes() const { return scopes_; }
  const std::vector<std::int32_t>& buffers() const { return buffers_; }  ///< storages made by buffer()
  const std::vector<std::int16_t>& buffer_instances() const { return buffer_instances_; }
  /// Every storage of the category takes so many times its bytes: a calibration's word on code that is not ours.
  void scale(Category category, double factor);
  /// Ends the record: what is let go from here on is no event.
  void close();

 protected:
  explicit Record(Tape* tape);
  ~Record();

  /// Guarded: there may be no bytes of it at other sizes.
  Tensor allocate(const Shape& shape, Dtype dtype, const char* op, bool guarded);

  /// A handle on a storage that is there already.
  Tensor handle(const TensorBody& description);
  Tensor on(std::int32_t storage, const Shape& shape, Dtype dtype);
  /// What is allocated from here on is added to the results or, where they are taken again, is one of them; null: new.
  void keep_in(KeptResults* kept) { kept_ = kept; }
  /// The last handle on a body went.
  void forget(TensorBody* body);
  /// A storage that was there before the step and is there after it.
  std::int32_t persistent(const Shape& shape, Dtype dtype, const char* name, Category category);
  /// The program of this layer instance starts again: it asks for the same buffers.
  void rewind_buffers(std::int16_t instance);

  std::int16_t scope_ = 0;
  /// Where scopes were found last, by a hash of their names.
  static constexpr int kScopeBits = 10;
  std::array<std::int16_t, std::size_t{1} << kScopeBits> remembered_{};
  std::int16_t instance_ = -1;
  std::int16_t instance_of_parameters_ = -1;  ///< which the next parameters and buffers belong to
  bool stopped_ = false;
  bool declares_alone_ = false;
  bool gradients_flow_ = false;  ///< the engine runs rules of backward

 private:
  friend class Tensor;
  struct Memory;

  void note(Event::Kind kind, std::int32_t subject) { events_.push_back({kind, subject}); }
  void grow_site_table();
  std::int32_t site_of(const Shape& shape, Count numel, Dtype dtype, const char* op);
  TensorBody& spare_body();
  TensorBody& new_body(const Shape& shape, Dtype dtype);

  static constexpr std::size_t kBodyChunk = 256;

  Tape* const tape_;  ///< this record, as its tensors know it
  std::vector<std::unique_ptr<TensorBody[]>> bodies_;
  std::size_t body_count_ = 0;             ///< of bodies_ that were ever used
  std::vector<TensorBody*> spare_bodies_;  ///< used and free again
  std::vector<Event> events_;
  std::vector<Storage> storages_;
  std::vector<Segment> segments_;
  std::vector<Site> sites_;
  std::vector<ScopeName> scopes_;
  std::vector<std::int32_t> site_table_;  ///< open addressing over sites_
  std::vector<std::int32_t> buffers_;
  std::vector<std::int16_t> buffer_instances_;
  std::vector<std::size_t> buffer_count_;   ///< by instance + 1, like the next one
  std::vector<std::size_t> buffer_cursor_;  ///< the next one that the program asks for
  Phase phase_ = Phase::kForward;
  Category category_ = Category::kActivations;
  Stream stream_ = kMainStream;
  std::int16_t card_ = 0, recorded_card_ = 0;
  KeptResults* kept_ = nullptr;
  bool force_segment_ = false;
  bool closed_ = false;
};

}  // namespace tidemark
