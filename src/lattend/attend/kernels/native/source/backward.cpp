// The gradients of q, k and v: five products a tile, sums in float32, added in one order however many threads.

#include <cmath>

#include "scoring.h"

namespace {

constexpr int64_t MEMBERS = 8;       // with fewer kv heads in a batch, the tiles of each are cut into chunks
constexpr int64_t TILES_OF_CHUNK = 8;  // at least
constexpr float MOST_SCORE = 1e30f;    // as in call.py

// Where a chunk of tiles adds up the gradients of keys and values, as rows of floats. Sums of keys from `first`
// on are in place: in dk and dv, or in memory that is turned into them. Those of keys before it are in place for
// an earlier chunk, so that this one has memory of its own for them, until all chunks are done.
struct KeySums {
  float *keys, *values;          // in place, of key 0
  int64_t key_step, value_step;  // floats from row to row there
  int64_t first, begun, end;     // sums in place from `begun` to `end` are not yet zeros
  float *own_keys, *own_values;  // of key `own_first`
  int64_t own_first, own_end;
};

// Whether all gradients of a query's results are 0, so that nothing depends on it.
bool is_unused(const Call &call, int64_t at, const float *grad, int64_t width) {
  bool some = call.grad_lse && call.grad_lse[at] != 0;
  for (int64_t d = 0; d < width; d++) some = some || grad[d] != 0;
  return !some;
}

// The queries of a tile and their output's gradients, as rows and as columns; log-sum-exps; and what is
// taken off a pair's slope: grad_out · out - grad_lse.
void read_queries(const Call &call, Scratch &s, int64_t b, int64_t h, const Tile &tile, float *lse, float *delta) {
  const Layout &layout = call.layout;
  Dtype dtype = call.dtype();
  const int32_t *offsets = call.lists.query_offsets + tile.query_shape * ROWS;
  int64_t width = padded(layout.dims), value_width = padded(layout.value_dims);
  int64_t count = call.lists.query_counts[tile.query_shape];
  for (int64_t r = 0; r < ROWS; r++) {
    int64_t query = tile.query_base + offsets[r], at = (b * layout.heads + h) * layout.queries + query;
    float *row = s.query + r * width, *grad = s.grad + r * value_width, *out = s.values;
    bool empty = r >= count || call.lse[at] == -INFINITY;  // a lane without a query or without keys adds nothing
    if (!empty) {
      read_row(dtype, row_of(call.grad_out, layout.grad_out, dtype, b, h, query), layout.value_dims, 1.0f, grad);
      empty = !(fabsf(call.lse[at]) < MOST_SCORE) && is_unused(call, at, grad, value_width);
    }
    lse[r] = empty ? INFINITY : call.lse[at];
    delta[r] = 0;
    if (empty) {
      memset(row, 0, width * sizeof(float));
      memset(grad, 0, value_width * sizeof(float));
      continue;
    }
    read_row(dtype, row_of(call.q, layout.q, dtype, b, h, query), layout.dims, float(layout.scale), row);
    read_row(dtype, row_of(static_cast<const char *>(call.out), layout.out, dtype, b, h, query), layout.value_dims,
             1.0f, out);
    Floats sum = Floats{};
    for (int64_t d = 0; d < value_width; d += LANES) sum += load(grad + d) * load(out + d);
    delta[r] = sum_of(sum) - (call.grad_lse ? call.grad_lse[at] : 0.0f);
  }
  transpose(s.query, layout.dims, s.query_columns);
  transpose(s.grad, layout.value_dims, s.grad_columns);
}

// Scores become weights; slopes of weights become slopes of scores. Both are 0 where a pair is not attended.
void differentiate(const Keys &keys, float *scores, float *slopes, const float *lse, const float *delta) {
  for (int a = 0; a < ACROSS; a++) {
    Floats normal = load(lse + a * LANES), taken = load(delta + a * LANES);
    for (int64_t j = 0; j < keys.count; j++) {
      float *score = scores + j * ROWS + a * LANES, *slope = slopes + j * ROWS + a * LANES;
      Floats weight = where_attended(exp2_of((load(score) - normal) * LOG2E), keys.bits[j], a, 0.0f);
      store(score, weight);
      store(slope, where_attended(weight * (load(slope) - taken), keys.bits[j], a, 0.0f));
    }
  }
}

void write_query_sums(const Call &call, Scratch &s, int64_t b, int64_t h, const Tile &tile) {
  const Layout &layout = call.layout;
  Dtype dtype = call.sums_dtype();
  const int32_t *offsets = call.lists.query_offsets + tile.query_shape * ROWS;
  int64_t width = padded(layout.dims);
  for (int64_t r = 0; r < call.lists.query_counts[tile.query_shape]; r++) {
    char *to = row_of(call.dq, layout.dq, dtype, b, h, tile.query_base + offsets[r]);
    float *row = s.query_sums + r * width, *before = s.query;
    if (tile.merges) read_row(dtype, to, layout.dims, 1.0f, before);
    for (int64_t d = 0; d < width; d += LANES) {
      Floats sum = load(row + d) * float(layout.scale);
      store(row + d, tile.merges ? sum + load(before + d) : sum);
    }
    write_row(dtype, row, layout.dims, to);
  }
}

// The sums in place of keys before `end` begin: the rows are in the nearest cache when something is added.
void begin_sums(const Layout &layout, KeySums &sums, int64_t end) {
  for (; sums.begun < end; sums.begun++) {
    memset(sums.keys + sums.begun * sums.key_step, 0, padded(layout.dims) * sizeof(float));
    memset(sums.values + sums.begun * sums.value_step, 0, padded(layout.value_dims) * sizeof(float));
  }
}

// The rows of sums of a tile's keys.
void find_sums(const Layout &layout, const Keys &keys, KeySums &sums, float **key_sums, float **value_sums) {
  int64_t width = padded(layout.dims), value_width = padded(layout.value_dims);
  begin_sums(layout, sums, keys.position[keys.count - 1] + 1);
  int64_t j = 0;
  for (; j < keys.count && keys.position[j] < sums.first; j++) {
    key_sums[j] = sums.own_keys + (keys.position[j] - sums.own_first) * width;
    value_sums[j] = sums.own_values + (keys.position[j] - sums.own_first) * value_width;
  }
  for (; j < keys.count; j++) {
    key_sums[j] = sums.keys + keys.position[j] * sums.key_step;
    value_sums[j] = sums.values + keys.position[j] * sums.value_step;
  }
}

// What the end of a tile writes, and what that after it reads and adds to.
void fetch_ahead(const Call &call, Scratch &s, int64_t b, int64_t h, const Tile &tile, const Tile &after,
                 const KeySums &sums) {
  const Layout &layout = call.layout;
  Dtype dtype = call.dtype(), result = call.sums_dtype();
  int64_t kv_head = h / (layout.heads / layout.kv_heads), dims = layout.dims, value_dims = layout.value_dims;
  const char *grad_out = row_of(call.grad_out, layout.grad_out, dtype, b, h, 0);
  const char *out = row_of(static_cast<const char *>(call.out), layout.out, dtype, b, h, 0);
  s.ahead.begin(call, tile, after);
  s.ahead.add_queries(call, row_of(call.dq, layout.dq, result, b, h, 0), layout.dq, result, dims, tile);
  if (&after != &tile) {
    s.ahead.add_queries(call, row_of(call.q, layout.q, dtype, b, h, 0), layout.q, dtype, dims, after);
    s.ahead.add_queries(call, out, layout.out, dtype, value_dims, after);
    s.ahead.add_queries(call, grad_out, layout.grad_out, dtype, value_dims, after);
    s.ahead.add_keys(row_of(call.k, layout.k, dtype, b, kv_head, 0), layout.k.by_row, dtype, dims, after);
    s.ahead.add_keys(row_of(call.v, layout.v, dtype, b, kv_head, 0), layout.v.by_row, dtype, value_dims, after);
    s.ahead.add_keys(reinterpret_cast<char *>(sums.keys), sums.key_step, FLOAT32, dims, after);
    s.ahead.add_keys(reinterpret_cast<char *>(sums.values), sums.value_step, FLOAT32, value_dims, after);
  }
  s.ahead.spread(call, tile, 2);
}

// Adds what flows through some keys of a tile to the gradients of these, their values and the queries.
template <bool CAREFUL>
void add_gradients(const Layout &layout, Scratch &s, float *const *key_sums, float *const *value_sums) {
  const Keys &keys = s.keys;
  int64_t width = padded(layout.dims), value_width = padded(layout.value_dims);
  scatter_rows<CAREFUL>(s.scores, keys.bits, keys.count, s.grad, value_width, value_sums);
  scatter_rows<CAREFUL>(s.slopes, keys.bits, keys.count, s.query, width, key_sums);
  gather_rows<CAREFUL>(s.slopes, keys.bits, keys.key, keys.count, width, s.query_sums);
}

// `after` is the tile that comes next, or this one where there is none.
void differentiate_tile(const Call &call, Scratch &s, int64_t b, int64_t h, const Tile &tile, const Tile &after,
                        KeySums &sums) {
  const Layout &layout = call.layout;
  int64_t kv_head = h / (layout.heads / layout.kv_heads);
  int64_t width = padded(layout.dims);
  float lse[ROWS], delta[ROWS];
  float *key_sums[CHUNK], *value_sums[CHUNK];
  read_queries(call, s, b, h, tile, lse, delta);
  memset(s.query_sums, 0, ROWS * width * sizeof(float));
  fetch_ahead(call, s, b, h, tile, after, sums);
  int64_t next = call.lists.list_begins[tile.key_list];
  for (;;) {
    take_keys(call, s, b, kv_head, tile, next, true);
    const Keys &keys = s.keys;
    if (!keys.count) break;
    find_sums(layout, keys, sums, key_sums, value_sums);
    scores_of(keys.key, keys.bits, keys.count, s.query_columns, layout.dims, s.scores, s.ahead);
    scores_of(keys.value, keys.bits, keys.count, s.grad_columns, layout.value_dims, s.slopes, s.ahead);
    // a NaN or an infinity of a query or a key is in the products of them too, attended or not
    bool careful = !are_finite(s.scores, keys.count * ROWS) || !are_finite(s.slopes, keys.count * ROWS);
    if (layout.softcap != 0) soften(call, keys, s.scores, s.softened);
    if (call.bias) add_bias(call, s, b, h, tile);
    differentiate(keys, s.scores, s.slopes, lse, delta);
    if (call.bias_slopes) write_slopes(call, s, b, h, tile);
    if (layout.softcap != 0) soften_slopes(keys, s.slopes, s.softened);
    (careful ? add_gradients<true> : add_gradients<false>)(layout, s, key_sums, value_sums);
  }
  write_query_sums(call, s, b, h, tile);
}

int64_t numbers_of_key(const Layout &layout) { return padded(layout.dims) + padded(layout.value_dims); }

// Whether sums can be made in dk and dv themselves.
bool in_results(const Layout &layout) {
  return layout.dtype == FLOAT32 && layout.dims % 16 == 0 && layout.value_dims % 16 == 0;
}

// The sums in place of one kv head: in dk and dv, or in this memory, all its keys, then all its values.
KeySums sums_in_place(const Call &call, int64_t b, int64_t kv_head, float *memory) {
  const Layout &layout = call.layout;
  KeySums sums = {};
  sums.end = layout.keys;
  if (in_results(layout)) {
    sums.keys = reinterpret_cast<float *>(row_of(call.dk, layout.dk, FLOAT32, b, kv_head, 0));
    sums.values = reinterpret_cast<float *>(row_of(call.dv, layout.dv, FLOAT32, b, kv_head, 0));
    sums.key_step = layout.dk.by_row;
    sums.value_step = layout.dv.by_row;
  } else {
    sums.keys = memory;
    sums.values = memory ? memory + layout.keys * padded(layout.dims) : nullptr;
    sums.key_step = padded(layout.dims);
    sums.value_step = padded(layout.value_dims);
  }
  return sums;
}

void add_row(float *to, const float *from, int64_t width) {
  for (int64_t d = 0; d < width; d += LANES) store(to + d, load(to + d) + load(from + d));
}

// The gradients of the keys and values of one kv head, from the sums of its chunks, in their order.
void finish_sums(const Call &call, int64_t b, int64_t kv_head, KeySums *chunks, int64_t count) {
  const Layout &layout = call.layout;
  int64_t width = padded(layout.dims), value_width = padded(layout.value_dims);
  for (int64_t c = 0; c < count; c++) begin_sums(layout, chunks[c], chunks[c].end);
  for (int64_t c = 0; c < count; c++) {
    const KeySums &sums = chunks[c];
    for (int64_t key = sums.own_first; key < sums.own_end; key++) {
      int64_t at = key - sums.own_first;
      add_row(sums.keys + key * sums.key_step, sums.own_keys + at * width, width);
      add_row(sums.values + key * sums.value_step, sums.own_values + at * value_width, value_width);
    }
  }
  if (in_results(layout)) return;
  Dtype dtype = call.dtype();
  for (int64_t key = 0; key < layout.keys; key++) {
    write_row(dtype, chunks->keys + key * width, layout.dims, row_of(call.dk, layout.dk, dtype, b, kv_head, key));
    write_row(dtype, chunks->values + key * value_width, layout.value_dims,
              row_of(call.dv, layout.dv, dtype, b, kv_head, key));
  }
}

// A chunk of the tiles of a stage, for all query heads that share a kv head.
void differentiate_tiles(Tasks &tasks, Scratch &scratch, int64_t member, int64_t stage, int64_t chunk,
                         KeySums &sums) {
  const Call &call = tasks.call;
  const Layout &layout = call.layout;
  int64_t share = layout.heads / layout.kv_heads, b = member / layout.kv_heads, kv_head = member % layout.kv_heads;
  for (int64_t h = kv_head * share; h < (kv_head + 1) * share; h++) {
    const int64_t *range = call.range(h, stage);
    int64_t count = range[1] - range[0];
    const Tile *tile = call.lists.tiles + range[0] + count * chunk / tasks.chunks;
    const Tile *end = call.lists.tiles + range[0] + count * (chunk + 1) / tasks.chunks;
    for (; tile < end; tile++) differentiate_tile(call, scratch, b, h, *tile, tile[tile + 1 < end], sums);
  }
}

void differentiate_chunk(Tasks &tasks, Scratch &scratch, int64_t task) {
  differentiate_tiles(tasks, scratch, task / tasks.chunks, tasks.stage, task % tasks.chunks, tasks.key_sums[task]);
}

void finish_chunks(Tasks &tasks, Scratch &, int64_t member) {
  int64_t kv_heads = tasks.call.layout.kv_heads;
  finish_sums(tasks.call, member / kv_heads, member % kv_heads, tasks.key_sums + member * tasks.chunks, tasks.chunks);
}

// All tiles of one kv head, where there are as many heads as threads may be.
void differentiate_member(Tasks &tasks, Scratch &scratch, int64_t member) {
  const Call &call = tasks.call;
  const Layout &layout = call.layout;
  int64_t b = member / layout.kv_heads, kv_head = member % layout.kv_heads;
  float *memory = nullptr;
  if (!in_results(layout)) {
    memory = static_cast<float *>(malloc((layout.keys * numbers_of_key(layout) + 1) * sizeof(float)));
    if (!memory) {
      __atomic_store_n(&tasks.failed, 1, __ATOMIC_RELAXED);
      return;
    }
  }
  KeySums sums = sums_in_place(call, b, kv_head, memory);
  for (int64_t stage = 0; stage < call.lists.stages; stage++)
    differentiate_tiles(tasks, scratch, member, stage, 0, sums);
  finish_sums(call, b, kv_head, &sums, 1);
  free(memory);
}

// The keys from the first to past the last that each chunk of each kv head has, [kv_heads][chunks][2].
void find_spans(const Call &call, int64_t chunks, int64_t *spans) {
  const Layout &layout = call.layout;
  int64_t share = layout.heads / layout.kv_heads;
  for (int64_t i = 0; i < layout.kv_heads * chunks; i++) {
    int64_t kv_head = i / chunks, chunk = i % chunks, first = layout.keys, end = 0;
    for (int64_t h = kv_head * share; h < (kv_head + 1) * share; h++)
      for (int64_t stage = 0; stage < call.lists.stages; stage++) {
        const int64_t *range = call.range(h, stage);
        int64_t count = range[1] - range[0];
        for (int64_t t = count * chunk / chunks; t < count * (chunk + 1) / chunks; t++) {
          const Tile &tile = call.lists.tiles[range[0] + t];
          const int64_t *list = call.lists.list_begins + tile.key_list;
          int64_t low = tile.key_base + call.lists.key_offsets[list[0]];
          int64_t high = tile.key_base + call.lists.key_offsets[list[1] - 1];
          first = low < first ? low : first;
          end = high + 1 > end ? high + 1 : end;
        }
      }
    spans[2 * i] = first < end ? first : 0;
    spans[2 * i + 1] = first < end ? end : 0;
  }
}

int64_t chunks_of(const Call &call) {
  int64_t members = call.layout.batch * call.layout.kv_heads, tiles = 0;
  if (!members || !call.lists.heads) return 1;
  for (int64_t h = 0; h < call.lists.heads; h++)
    for (int64_t stage = 0; stage < call.lists.stages; stage++)
      tiles += call.range(h, stage)[1] - call.range(h, stage)[0];
  int64_t most = tiles / call.lists.heads / TILES_OF_CHUNK, wanted = (MEMBERS + members - 1) / members;
  return most < 1 ? 1 : most < wanted ? most : wanted;
}

// The sums of all chunks, [members][chunks]; gives the floats of `memory` that they take, which may be null at first.
int64_t place_sums(const Call &call, int64_t chunks, const int64_t *spans, float *memory, KeySums *sums) {
  const Layout &layout = call.layout;
  int64_t width = padded(layout.dims), taken = 0;
  auto take = [&](int64_t floats) {
    float *begin = memory ? memory + taken : nullptr;
    taken += floats;
    return begin;
  };
  for (int64_t member = 0; member < layout.batch * layout.kv_heads; member++) {
    int64_t kv_head = member % layout.kv_heads, first = 0;
    float *rows = in_results(layout) ? nullptr : take(layout.keys * numbers_of_key(layout));
    KeySums place = sums_in_place(call, member / layout.kv_heads, kv_head, rows);
    for (int64_t c = 0; c < chunks; c++) {
      const int64_t *span = spans + (kv_head * chunks + c) * 2;
      int64_t end = span[1] > first ? span[1] : first, own_end = span[1] < first ? span[1] : first;
      KeySums &mine = sums[member * chunks + c] = place;
      mine.first = mine.begun = first;
      mine.end = c + 1 < chunks ? end : layout.keys;
      mine.own_first = span[0];
      mine.own_end = own_end > span[0] ? own_end : span[0];
      mine.own_keys = take((mine.own_end - mine.own_first) * width);
      mine.own_values = take((mine.own_end - mine.own_first) * padded(layout.value_dims));
      first = end;
    }
  }
  return taken;
}

int64_t run_in_chunks(const Call &call, int64_t chunks, int64_t threads) {
  const Layout &layout = call.layout;
  int64_t members = layout.batch * layout.kv_heads, spans[2 * MEMBERS * MEMBERS];
  KeySums sums[MEMBERS * MEMBERS];
  find_spans(call, chunks, spans);
  int64_t taken = place_sums(call, chunks, spans, nullptr, sums);
  float *memory = static_cast<float *>(calloc(taken + 1, sizeof(float)));
  int64_t failed = !memory;
  if (memory) place_sums(call, chunks, spans, memory, sums);
  for (int64_t stage = 0; stage < call.lists.stages && !failed; stage++) {
    Tasks tasks = {call, differentiate_chunk, members * chunks, 0, 0, stage, chunks, sums};
    failed = run(tasks, threads);
  }
  if (!failed) {
    Tasks tasks = {call, finish_chunks, members, 0, 0, 0, chunks, sums};
    failed = run(tasks, threads);
  }
  free(memory);
  return failed;
}

}  // namespace

// Gives 0, or 1 where there is too little memory.
extern "C" int64_t LEVEL_NAME(lattend_backward)(const TileLists *lists, const Layout *layout, const void *grad_out,
                                                const float *grad_lse, const void *q, const void *k, const void *v,
                                                const void *out, const float *lse, const void *real,
                                                const float *bias, void *dq, void *dk, void *dv, float *bias_slopes,
                                                int64_t threads) {
  Call call = {*lists,
               *layout,
               static_cast<const char *>(q),
               static_cast<const char *>(k),
               static_cast<const char *>(v),
               static_cast<const uint8_t *>(real),
               static_cast<char *>(const_cast<void *>(out)),
               const_cast<float *>(lse),
               static_cast<const char *>(grad_out),
               grad_lse,
               static_cast<char *>(dq),
               static_cast<char *>(dk),
               static_cast<char *>(dv),
               bias,
               bias_slopes};
  use_large_pages(*layout, call.dq, layout->dq, call.sums_dtype(), layout->heads, layout->queries, layout->dims);
  use_large_pages(*layout, call.dk, layout->dk, call.dtype(), layout->kv_heads, layout->keys, layout->dims);
  use_large_pages(*layout, call.dv, layout->dv, call.dtype(), layout->kv_heads, layout->keys, layout->value_dims);
  if (!lists->covered)
    for (int64_t b = 0; b < layout->batch; b++)
      for (int64_t h = 0; h < layout->heads; h++)
        for (int64_t query = 0; query < layout->queries; query++)
          memset(row_of(call.dq, layout->dq, call.sums_dtype(), b, h, query), 0,
                 layout->dims * bytes_of(call.sums_dtype()));
  int64_t chunks = chunks_of(call);
  if (chunks > 1) return run_in_chunks(call, chunks, threads);
  Tasks tasks = {call, differentiate_member, layout->batch * layout->kv_heads, 0, 0, 0, 1, nullptr};
  return run(tasks, threads);
}
