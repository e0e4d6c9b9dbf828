// The gradients of q, k and v: five products a tile, sums in float32, added in one order however many threads.

#include <cmath>

#include "scoring.h"

namespace {

constexpr int64_t MEMBERS = 8;       // with fewer kv heads in a batch, the tiles of each are cut into chunks
constexpr int64_t TILES_OF_CHUNK = 8;  // at least

// The gradients of some keys and values of one head, from key `first` on, as rows of floats.
struct KeySums {
  float *keys, *values;
  int64_t first;
};

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
    bool empty = r >= count || call.lse[at] == -INFINITY;  // a lane without a query adds nothing
    lse[r] = empty ? INFINITY : call.lse[at];
    delta[r] = 0;
    if (r >= count) {
      memset(row, 0, width * sizeof(float));
      memset(grad, 0, value_width * sizeof(float));
      continue;
    }
    read_row(dtype, row_of(call.q, layout.q, dtype, b, h, query), layout.dims, float(layout.scale), row);
    read_row(dtype, row_of(call.grad_out, layout.grad_out, dtype, b, h, query), layout.value_dims, 1.0f, grad);
    if (empty) continue;
    read_row(dtype, row_of(static_cast<const char *>(call.out), layout.out, dtype, b, h, query), layout.value_dims,
             1.0f, out);
    Floats sum = Floats{};
    for (int64_t d = 0; d < value_width; d += LANES) sum += load(grad + d) * load(out + d);
    for (int i = 0; i < LANES; i++) delta[r] += sum[i];
    if (call.grad_lse) delta[r] -= call.grad_lse[at];
  }
  transpose(s.query, layout.dims, s.query_columns);
  transpose(s.grad, layout.value_dims, s.grad_columns);
}

// Scores become weights; slopes of weights become slopes of scores.
void differentiate(const Keys &keys, float *scores, float *slopes, const float *lse, const float *delta) {
  for (int a = 0; a < ACROSS; a++) {
    Floats normal = load(lse + a * LANES), taken = load(delta + a * LANES);
    for (int64_t j = 0; j < keys.count; j++) {
      float *score = scores + j * ROWS + a * LANES, *slope = slopes + j * ROWS + a * LANES;
      Floats weight = exp2_of((load(score) - normal) * LOG2E);
      store(score, weight);
      store(slope, weight * (load(slope) - taken));
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

void differentiate_tile(const Call &call, Scratch &s, int64_t b, int64_t h, const Tile &tile, const KeySums &sums) {
  const Layout &layout = call.layout;
  int64_t kv_head = h / (layout.heads / layout.kv_heads);
  int64_t width = padded(layout.dims), value_width = padded(layout.value_dims);
  float lse[ROWS], delta[ROWS];
  float *key_sums[CHUNK], *value_sums[CHUNK];
  read_queries(call, s, b, h, tile, lse, delta);
  memset(s.query_sums, 0, ROWS * width * sizeof(float));
  int64_t next = call.lists.list_begins[tile.key_list];
  for (;;) {
    take_keys(call, s, b, kv_head, tile, next, true);
    const Keys &keys = s.keys;
    if (!keys.count) break;
    for (int64_t j = 0; j < keys.count; j++) {
      key_sums[j] = sums.keys + (keys.position[j] - sums.first) * width;
      value_sums[j] = sums.values + (keys.position[j] - sums.first) * value_width;
    }
    scores_of(keys.key, keys.count, s.query_columns, layout.dims, s.scores);
    scores_of(keys.value, keys.count, s.grad_columns, layout.value_dims, s.slopes);
    if (layout.softcap != 0) soften(call, keys, s.scores, s.softened);
    if (call.bias) add_bias(call, s, b, h, tile);
    block(keys, s.scores, BLOCKED);
    differentiate(keys, s.scores, s.slopes, lse, delta);
    block(keys, s.slopes, 0.0f);
    if (call.bias_slopes) write_slopes(call, s, b, h, tile);
    if (layout.softcap != 0) soften_slopes(keys, s.slopes, s.softened);
    scatter_rows(s.scores, keys.count, s.grad, value_width, value_sums);
    scatter_rows(s.slopes, keys.count, s.query, width, key_sums);
    gather_rows(s.slopes, keys.key, keys.count, width, s.query_sums);
  }
  write_query_sums(call, s, b, h, tile);
}

// The rows of dk and dv: the sums of all chunks, or zeros where none has the key.
void write_key_sums(const Call &call, Scratch &s, int64_t b, int64_t kv_head, const KeySums *chunks,
                    const int64_t *spans, int64_t count) {
  const Layout &layout = call.layout;
  int64_t widths[] = {padded(layout.dims), padded(layout.value_dims)}, dims[] = {layout.dims, layout.value_dims};
  for (int64_t key = 0; key < layout.keys; key++)
    for (int side = 0; side < 2; side++) {
      float *row = side ? s.values : s.query;
      memset(row, 0, widths[side] * sizeof(float));
      for (int64_t c = 0; c < count; c++) {
        if (key < spans[2 * c] || key >= spans[2 * c + 1]) continue;
        const float *from = (side ? chunks[c].values : chunks[c].keys) + (key - chunks[c].first) * widths[side];
        for (int64_t d = 0; d < widths[side]; d += LANES) store(row + d, load(row + d) + load(from + d));
      }
      const Strides &by = side ? layout.dv : layout.dk;
      write_row(call.dtype(), row, dims[side], row_of(side ? call.dv : call.dk, by, call.dtype(), b, kv_head, key));
    }
}

int64_t numbers_of_key(const Layout &layout) { return padded(layout.dims) + padded(layout.value_dims); }

// Memory of a chunk: all its keys, then all its values.
KeySums sums_at(const Layout &layout, float *memory, const int64_t *span) {
  return {memory, memory + (span[1] - span[0]) * padded(layout.dims), span[0]};
}

// One of several chunks of tiles of a stage, for all query heads that share a kv head.
void differentiate_chunk(Tasks &tasks, Scratch &scratch, int64_t task) {
  const Call &call = tasks.call;
  const Layout &layout = call.layout;
  int64_t member = task / tasks.chunks, chunk = task % tasks.chunks, share = layout.heads / layout.kv_heads;
  int64_t b = member / layout.kv_heads, kv_head = member % layout.kv_heads;
  const int64_t *spans = tasks.spans + kv_head * tasks.chunks * 2;
  float *memory = tasks.key_sums;
  for (int64_t other = 0; other < task; other++) {
    const int64_t *span = tasks.spans + other % (layout.kv_heads * tasks.chunks) * 2;
    memory += (span[1] - span[0]) * numbers_of_key(layout);
  }
  KeySums sums = sums_at(layout, memory, spans + chunk * 2);
  for (int64_t h = kv_head * share; h < (kv_head + 1) * share; h++) {
    const int64_t *range = call.range(h, tasks.stage);
    int64_t count = range[1] - range[0];
    for (int64_t t = count * chunk / tasks.chunks; t < count * (chunk + 1) / tasks.chunks; t++)
      differentiate_tile(call, scratch, b, h, call.lists.tiles[range[0] + t], sums);
  }
}

// The gradients of the keys and values of one kv head, from the sums of its chunks.
void add_chunks(Tasks &tasks, Scratch &scratch, int64_t member) {
  const Layout &layout = tasks.call.layout;
  int64_t kv_head = member % layout.kv_heads;
  KeySums chunks[MEMBERS];
  float *memory = tasks.key_sums;
  for (int64_t task = 0; task < (member + 1) * tasks.chunks; task++) {
    const int64_t *span = tasks.spans + task % (layout.kv_heads * tasks.chunks) * 2;
    if (task >= member * tasks.chunks) chunks[task - member * tasks.chunks] = sums_at(layout, memory, span);
    memory += (span[1] - span[0]) * numbers_of_key(layout);
  }
  write_key_sums(tasks.call, scratch, member / layout.kv_heads, kv_head, chunks,
                 tasks.spans + kv_head * tasks.chunks * 2, tasks.chunks);
}

// All tiles of one kv head, where there are as many heads as threads may be.
void differentiate_member(Tasks &tasks, Scratch &scratch, int64_t member) {
  const Call &call = tasks.call;
  const Layout &layout = call.layout;
  int64_t share = layout.heads / layout.kv_heads, b = member / layout.kv_heads, kv_head = member % layout.kv_heads;
  int64_t span[] = {0, layout.keys};
  float *memory = static_cast<float *>(calloc(layout.keys * numbers_of_key(layout) + 1, sizeof(float)));
  if (!memory) {
    __atomic_store_n(&tasks.failed, 1, __ATOMIC_RELAXED);
    return;
  }
  KeySums sums = sums_at(layout, memory, span);
  for (int64_t h = kv_head * share; h < (kv_head + 1) * share; h++)
    for (int64_t stage = 0; stage < call.lists.stages; stage++)
      for (int64_t t = call.range(h, stage)[0]; t < call.range(h, stage)[1]; t++)
        differentiate_tile(call, scratch, b, h, call.lists.tiles[t], sums);
  write_key_sums(call, scratch, b, kv_head, &sums, span, 1);
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
  for (int64_t h = 0; h < call.lists.heads; h++)
    for (int64_t stage = 0; stage < call.lists.stages; stage++)
      tiles += call.range(h, stage)[1] - call.range(h, stage)[0];
  int64_t most = tiles / call.lists.heads / TILES_OF_CHUNK, wanted = (MEMBERS + members - 1) / members;
  return most < 1 ? 1 : most < wanted ? most : wanted;
}

int64_t run_in_chunks(const Call &call, int64_t chunks, int64_t threads) {
  const Layout &layout = call.layout;
  int64_t members = layout.batch * layout.kv_heads, spans[2 * MEMBERS * MEMBERS], keys = 0;
  find_spans(call, chunks, spans);
  for (int64_t i = 0; i < layout.kv_heads * chunks; i++) keys += spans[2 * i + 1] - spans[2 * i];
  float *memory =
      static_cast<float *>(calloc(layout.batch * keys * numbers_of_key(layout) + 1, sizeof(float)));
  int64_t failed = !memory;
  for (int64_t stage = 0; stage < call.lists.stages && !failed; stage++) {
    Tasks tasks = {call, differentiate_chunk, members * chunks, 0, 0, stage, chunks, memory, spans};
    failed = run(tasks, threads);
  }
  if (!failed) {
    Tasks tasks = {call, add_chunks, members, 0, 0, 0, chunks, memory, spans};
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
  if (!lists->covered)
    for (int64_t b = 0; b < layout->batch; b++)
      for (int64_t h = 0; h < layout->heads; h++)
        for (int64_t query = 0; query < layout->queries; query++)
          memset(row_of(call.dq, layout->dq, call.sums_dtype(), b, h, query), 0,
                 layout->dims * bytes_of(call.sums_dtype()));
  int64_t chunks = chunks_of(call);
  if (chunks > 1) return run_in_chunks(call, chunks, threads);
  Tasks tasks = {call, differentiate_member, layout->batch * layout->kv_heads, 0, 0, 0, 1, nullptr, nullptr};
  return run(tasks, threads);
}
