// What a call is given: tiles of 16 queries with their lists of keys, where tensors lie; and memory to work in.

#pragma once

#include <cstdlib>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "products.h"

namespace {

constexpr int CHUNK = 128;           // keys taken at once: their rows stay in the nearest cache
constexpr uint16_t EVERY = 0xffff;  // all 16 queries attend to the key
constexpr float LOG2E = 1.44269504f;
constexpr float BLOCKED = -__builtin_inff();  // the score of a pair that is not attended

// The layouts of these four are those of tile_lists.py and kernel.py.

struct Tile {
  int64_t query_base, query_shape, key_base, key_list;
  int64_t merges;  // whether its queries have keys in an earlier stage
};

struct TileLists {
  int64_t heads, stages;
  int64_t covered;               // whether every query is in some tile
  const int64_t *ranges;         // [heads][stages][2]: first tile and end
  const Tile *tiles;             // in the order of their queries
  const int32_t *query_offsets;  // [shapes][16], the last one again behind the last
  const int64_t *query_counts;   // [shapes]
  const int64_t *list_begins;    // [lists + 1]
  const int32_t *key_offsets;    // rising in each list
  const uint16_t *key_bits;      // which of the 16 queries attend to it
};

struct Strides {
  int64_t by_batch, by_head, by_row;  // in numbers
};

struct Layout {
  int64_t batch, heads, kv_heads, queries, keys, dims, value_dims;
  int64_t dtype;       // of what is given
  int64_t sums_dtype;  // of the output, or of the gradient of q
  Strides q, k, v, out, grad_out, dq, dk, dv;
  int64_t bias[4];  // by batch, head, query and key, in numbers
  double scale;
  double softcap;  // 0 where there is none
  void (*parallel)(void (*)(void *), void *, unsigned, unsigned);  // of OpenMP; null where there is none
};

struct Call {
  const TileLists &lists;
  const Layout &layout;
  const char *q, *k, *v;
  const uint8_t *real;  // [batch][keys], 0 where a key is padding; null where none is
  char *out;
  float *lse;  // [batch][heads][queries]; null where nobody wants it
  const char *grad_out;
  const float *grad_lse;  // as lse, or null
  char *dq, *dk, *dv;
  const float *bias;   // as its strides say; null where there is none
  float *bias_slopes;  // [batch][heads][queries][keys], zeros at first; null where nobody wants them

  Dtype dtype() const { return Dtype(layout.dtype); }
  Dtype sums_dtype() const { return Dtype(layout.sums_dtype); }
  const int64_t *range(int64_t head, int64_t stage) const {
    return lists.ranges + (head % lists.heads * lists.stages + stage) * 2;
  }
};

template <class Byte>
inline Byte *row_of(Byte *tensor, const Strides &by, Dtype dtype, int64_t b, int64_t h, int64_t row) {
  return tensor + (b * by.by_batch + h * by.by_head + row * by.by_row) * bytes_of(dtype);
}

// Rows that are needed soon, fetched towards the nearer caches a few at a time, between products. Those of two tiles
// may lie too far apart for the processor to foresee, and many at once wait for each other.
struct RowsAhead {
  struct Group {
    const char *first;
    int64_t step, bytes;  // from row to row, and of a row
    const int32_t *offsets, *end;  // which rows, from the first on
  };
  Group groups[8];
  Group *next, *last;
  int64_t at_once;
  int32_t keys[2 * CHUNK];  // those of the next tile that this one does not have; not all where there are many
  int64_t key_count = 0, apart = 0, lists[2] = {-1, -1};  // of which lists these are, and how far apart those begin

  void begin(const Call &call, const Tile &tile, const Tile &after) {
    next = last = groups;
    if (apart != after.key_base - tile.key_base || lists[0] != tile.key_list || lists[1] != after.key_list)
      find_keys(call, tile, after);
  }
  void find_keys(const Call &call, const Tile &tile, const Tile &after) {
    lists[0] = tile.key_list, lists[1] = after.key_list, apart = after.key_base - tile.key_base;
    const int64_t *begins = call.lists.list_begins;
    int64_t mine = begins[lists[0]], end = begins[lists[0] + 1];
    key_count = 0;
    for (int64_t i = begins[lists[1]]; i < begins[lists[1] + 1] && key_count < 2 * CHUNK; i++) {
      int64_t offset = call.lists.key_offsets[i] + apart;
      while (mine < end && call.lists.key_offsets[mine] < offset) mine++;
      if (mine == end || call.lists.key_offsets[mine] != offset) keys[key_count++] = call.lists.key_offsets[i];
    }
  }
  void add_queries(const Call &call, const char *first, const Strides &by, Dtype dtype, int64_t dims,
                   const Tile &tile) {
    const int32_t *offsets = call.lists.query_offsets + tile.query_shape * ROWS;
    add(first + tile.query_base * by.by_row * bytes_of(dtype), by.by_row, dtype, dims, offsets, ROWS);
  }
  void add_keys(const char *first, int64_t by_row, Dtype dtype, int64_t dims, const Tile &after) {
    add(first + after.key_base * by_row * bytes_of(dtype), by_row, dtype, dims, keys, key_count);
  }
  void add(const char *first, int64_t by_row, Dtype dtype, int64_t dims, const int32_t *offsets, int64_t count) {
    *last++ = {first, by_row * bytes_of(dtype), dims * bytes_of(dtype), offsets, offsets + count};
  }
  // All rows are fetched when the tile's keys have been multiplied so many times.
  void spread(const Call &call, const Tile &tile, int64_t times) {
    const int64_t *list = call.lists.list_begins + tile.key_list;
    int64_t blocks = (list[1] - list[0] + AT_ONCE - 1) / AT_ONCE * times, rows = 0;
    for (Group *group = groups; group < last; group++) rows += group->end - group->offsets;
    at_once = blocks ? (rows + blocks - 1) / blocks : 0;  // a tile may have no keys
  }
  void fetch() {
    for (int64_t left = at_once; left && next < last;) {
      if (next->offsets == next->end) {
        next++;
        continue;
      }
      const char *row = next->first + *next->offsets++ * next->step;
      for (int64_t at = 0; at < next->bytes; at += 64) __builtin_prefetch(row + at, 0, 2);
      left--;
    }
  }
};

// Asks for large pages where a large result will be written: with small ones each 4 KiB begin with a call of the
// system, which takes longer than what is computed for them.
inline void use_large_pages([[maybe_unused]] char *from, [[maybe_unused]] int64_t bytes) {
#if defined(MADV_HUGEPAGE)
  constexpr uintptr_t PAGE = 1 << 21;
  uintptr_t at = reinterpret_cast<uintptr_t>(from), begin = (at + PAGE - 1) / PAGE * PAGE;
  if (bytes < 2 * int64_t(PAGE)) return;
  madvise(reinterpret_cast<void *>(begin), (at + bytes) / PAGE * PAGE - begin, MADV_HUGEPAGE);
#endif
}

inline void use_large_pages(const Layout &layout, char *tensor, const Strides &by, Dtype dtype, int64_t heads,
                            int64_t rows, int64_t dims) {
  int64_t last = (layout.batch - 1) * by.by_batch + (heads - 1) * by.by_head + (rows - 1) * by.by_row;
  use_large_pages(tensor, (last + dims) * bytes_of(dtype));
}

// Up to CHUNK keys of a tile: where they are, and their rows as floats, in place where these can be read so.
struct Keys {
  int64_t count;
  int64_t position[CHUNK];
  uint16_t bits[CHUNK + AT_ONCE];  // each attended by some query; zeros behind the last
  const float *key[CHUNK + AT_ONCE], *value[CHUNK + AT_ONCE];
};

// One piece of memory cut into parts of these sizes, all multiples of 16; null where there is none.
template <int COUNT>
float *allocated(const int64_t (&sizes)[COUNT], float **(&parts)[COUNT]) {
  int64_t total = 0;
  for (int64_t size : sizes) total += size;
  float *memory = static_cast<float *>(aligned_alloc(64, total * sizeof(float))), *next = memory;
  for (int i = 0; i < COUNT && memory; i++) {
    *parts[i] = next;
    next += sizes[i];
  }
  return memory;
}

// The memory of one thread. What has a place for every number of a row is allocated; copies only where they are made.
struct Scratch {
  static constexpr int SCORED = (CHUNK + AT_ONCE) * ROWS;
  Keys keys;
  RowsAhead ahead;
  alignas(64) float scores[SCORED] = {}, slopes[SCORED] = {}, softened[SCORED];  // [CHUNK][16]
  alignas(64) float biases[SCORED], bias_columns[SCORED];              // [16][CHUNK], [CHUNK][16]
  float *memory;
  float *query, *query_columns;      // [16][dims], [dims][16]
  float *grad, *grad_columns;        // the same of the output's gradient
  float *values, *query_sums;        // [16][value_dims], [16][dims]
  float *key_copies, *value_copies;  // [CHUNK][dims], [CHUNK][value_dims]

  explicit Scratch(const Layout &layout) {
    int64_t dims = padded(layout.dims), value_dims = padded(layout.value_dims);
    bool copied = layout.dtype != FLOAT32 || dims != layout.dims || value_dims != layout.value_dims;
    int64_t copies = copied ? CHUNK : 0;
    int64_t sizes[] = {ROWS * dims,       ROWS * dims, ROWS * value_dims, ROWS * value_dims,
                       ROWS * value_dims, ROWS * dims, copies * dims,     copies * value_dims};
    float **parts[] = {&query,  &query_columns, &grad,       &grad_columns,
                       &values, &query_sums,    &key_copies, &value_copies};
    memory = allocated(sizes, parts);
  }
  ~Scratch() { free(memory); }
};

// The rows of keys at these positions as floats; copied where they are no floats or end within a vector.
inline void find_rows(const Keys &keys, const char *tensor, int64_t by_row, Dtype dtype, int64_t dims, bool whole,
                      float *copies, const float **rows) {
  if (dtype == FLOAT32 && (dims % 16 == 0 || !whole)) {
    const float *first = reinterpret_cast<const float *>(tensor);
    for (int64_t j = 0; j < keys.count; j++) rows[j] = first + keys.position[j] * by_row;
  } else {
    for (int64_t j = 0; j < keys.count; j++) {
      float *copy = copies + j * padded(dims);
      read_row(dtype, tensor + keys.position[j] * by_row * bytes_of(dtype), dims, 1.0f, copy);
      rows[j] = copy;
    }
  }
  for (int64_t j = keys.count; j < keys.count + AT_ONCE; j++) rows[j] = rows[0];
}

// Takes the next real keys of a list, from entry `next` on; `whole` where rows of keys are read as vectors.
inline void take_keys(const Call &call, Scratch &s, int64_t b, int64_t kv_head, const Tile &tile, int64_t &next,
                      bool whole) {
  const Layout &layout = call.layout;
  Keys &keys = s.keys;
  Dtype dtype = call.dtype();
  int64_t end = call.lists.list_begins[tile.key_list + 1], count = 0;
  if (call.real) {
    for (; next < end && count < CHUNK; next++) {
      keys.position[count] = tile.key_base + call.lists.key_offsets[next];
      keys.bits[count] = call.lists.key_bits[next];
      count += call.real[b * layout.keys + keys.position[count]] != 0;
    }
  } else {
    count = end - next < CHUNK ? end - next : CHUNK;
    for (int64_t j = 0; j < count; j++) keys.position[j] = tile.key_base + call.lists.key_offsets[next + j];
    memcpy(keys.bits, call.lists.key_bits + next, count * sizeof(uint16_t));
    next += count;
  }
  keys.count = count;
  memset(keys.bits + count, 0, AT_ONCE * sizeof(uint16_t));
  if (!count) return;
  find_rows(keys, row_of(call.k, layout.k, dtype, b, kv_head, 0), layout.k.by_row, dtype, layout.dims, whole,
            s.key_copies, keys.key);
  find_rows(keys, row_of(call.v, layout.v, dtype, b, kv_head, 0), layout.v.by_row, dtype, layout.value_dims, true,
            s.value_copies, keys.value);
}

// x where the queries of a vector attend, and `otherwise` elsewhere.
inline Floats where_attended(Floats x, uint16_t bits, int across, float otherwise) {
  Ints lane;
  UNROLLED for (int i = 0; i < LANES; i++) lane[i] = 1 << i;
  Ints attended = all(int32_t(bits >> (across * LANES))) & lane;
  return attended != 0 ? x : all(otherwise);
}

struct KeySums;

// Tasks that threads take one after another; which takes which makes no difference to the results.
struct Tasks {
  const Call &call;
  void (*work)(Tasks &, Scratch &, int64_t);
  int64_t count, next, failed;
  int64_t stage, chunks;
  KeySums *key_sums;  // of the backward pass
};

inline void take_tasks(void *given) {
  Tasks &tasks = *static_cast<Tasks *>(given);
  Scratch scratch(tasks.call.layout);
  if (!scratch.memory) {
    __atomic_store_n(&tasks.failed, 1, __ATOMIC_RELAXED);
    return;
  }
  for (;;) {
    int64_t task = __atomic_fetch_add(&tasks.next, 1, __ATOMIC_RELAXED);
    if (task >= tasks.count) return;
    tasks.work(tasks, scratch, task);
  }
}

inline int64_t run(Tasks &tasks, int64_t threads) {
  auto parallel = tasks.call.layout.parallel;
  if (threads > tasks.count) threads = tasks.count;
  if (threads > 1 && parallel)
    parallel(take_tasks, &tasks, unsigned(threads), 0);
  else
    take_tasks(&tasks);
  return tasks.failed;
}

}  // namespace
