// The output and the log-sum-exp: online softmax over the keys of a tile, a chunk of them at a time.

#include <cmath>

#include "scoring.h"

namespace {

constexpr int64_t TILES_OF_TASK = 16;

// Where the sums of a tile begin: at nothing, or at what earlier stages found.
void begin_tile(const Call &call, Scratch &s, int64_t b, int64_t h, const Tile &tile, float *top, float *total) {
  const Layout &layout = call.layout;
  int64_t width = padded(layout.value_dims);
  for (int r = 0; r < ROWS; r++) {
    top[r] = -INFINITY;
    total[r] = 0;
  }
  if (!tile.merges) {
    memset(s.values, 0, ROWS * width * sizeof(float));
    return;
  }
  const int32_t *offsets = call.lists.query_offsets + tile.query_shape * ROWS;
  for (int r = 0; r < ROWS; r++) {
    int64_t query = tile.query_base + offsets[r];
    float lse = call.lse[(b * layout.heads + h) * layout.queries + query];
    if (lse != -INFINITY) {
      top[r] = lse;
      total[r] = 1;
    }
    read_row(call.sums_dtype(), row_of(call.out, layout.out, call.sums_dtype(), b, h, query), layout.value_dims, 1.0f,
             s.values + r * width);
  }
}

void end_tile(const Call &call, Scratch &s, int64_t b, int64_t h, const Tile &tile, const float *top,
              const float *total) {
  const Layout &layout = call.layout;
  int64_t width = padded(layout.value_dims);
  const int32_t *offsets = call.lists.query_offsets + tile.query_shape * ROWS;
  for (int64_t r = 0; r < call.lists.query_counts[tile.query_shape]; r++) {
    int64_t query = tile.query_base + offsets[r];
    float *row = s.values + r * width, share = total[r] == 0 ? 0.0f : 1 / total[r];
    for (int64_t d = 0; d < width; d += LANES) store(row + d, load(row + d) * share);
    write_row(call.sums_dtype(), row, layout.value_dims, row_of(call.out, layout.out, call.sums_dtype(), b, h, query));
    if (call.lse)
      call.lse[(b * layout.heads + h) * layout.queries + query] =
          total[r] == 0 ? -INFINITY : top[r] + logf(total[r]);
  }
}

// Raises the largest scores to those of a chunk, turns the chunk's into weights, and adds these up.
void weigh(const Keys &keys, float *scores, float *top, float *total, float *values, int64_t width) {
  bool raised = false;
  float kept[ROWS];
  for (int a = 0; a < ACROSS; a++) {
    Floats largest = load(top + a * LANES);
    Floats before = largest, sum = Floats{};
    for (int64_t j = 0; j < keys.count; j++) {
      float *at = scores + j * ROWS + a * LANES;
      Floats score = where_attended(load(at), keys.bits[j], a, BLOCKED);
      store(at, score);
      largest = larger(score, largest);
    }
    Floats taken = largest == BLOCKED ? Floats{} : largest;  // finite, so that no difference of two is NaN
    Floats share = exp2_of((before - taken) * LOG2E);
    for (int64_t j = 0; j < keys.count; j++) {
      float *at = scores + j * ROWS + a * LANES;
      Floats weight = exp2_of((load(at) - taken) * LOG2E);
      store(at, weight);
      sum += weight;
    }
    store(total + a * LANES, load(total + a * LANES) * share + sum);
    store(top + a * LANES, largest);
    store(kept + a * LANES, share);
  }
  for (int r = 0; r < ROWS; r++) raised = raised || kept[r] != 1;
  if (!raised) return;
  for (int r = 0; r < ROWS; r++)
    for (int64_t d = 0; d < width; d += LANES) store(values + r * width + d, load(values + r * width + d) * kept[r]);
}

// What the end of a tile writes, and what that after it reads.
void fetch_ahead(const Call &call, Scratch &s, int64_t b, int64_t h, const Tile &tile, const Tile &after) {
  const Layout &layout = call.layout;
  Dtype dtype = call.dtype(), result = call.sums_dtype();
  int64_t kv_head = h / (layout.heads / layout.kv_heads), dims = layout.dims, value_dims = layout.value_dims;
  s.ahead.begin(call, tile, after);
  s.ahead.add_queries(call, row_of(call.out, layout.out, result, b, h, 0), layout.out, result, value_dims, tile);
  if (&after != &tile) {
    s.ahead.add_queries(call, row_of(call.q, layout.q, dtype, b, h, 0), layout.q, dtype, dims, after);
    s.ahead.add_keys(row_of(call.k, layout.k, dtype, b, kv_head, 0), layout.k.by_row, dtype, dims, after);
    s.ahead.add_keys(row_of(call.v, layout.v, dtype, b, kv_head, 0), layout.v.by_row, dtype, value_dims, after);
  }
  s.ahead.spread(call, tile, 1);
}

// `after` is the tile that comes next, or this one where there is none. Where a NaN or an infinity comes out, the sums
// are made again, carefully: it may be in the value of a key that only other queries of the tile attend to.
template <bool CAREFUL>
void attend_tile(const Call &call, Scratch &s, int64_t b, int64_t h, const Tile &tile, const Tile &after) {
  const Layout &layout = call.layout;
  int64_t kv_head = h / (layout.heads / layout.kv_heads), width = padded(layout.value_dims);
  const int32_t *offsets = call.lists.query_offsets + tile.query_shape * ROWS;
  float top[ROWS], total[ROWS];
  for (int r = 0; r < ROWS; r++)
    read_row(call.dtype(), row_of(call.q, layout.q, call.dtype(), b, h, tile.query_base + offsets[r]), layout.dims,
             float(layout.scale), s.query + r * padded(layout.dims));
  transpose(s.query, layout.dims, s.query_columns);
  begin_tile(call, s, b, h, tile, top, total);
  fetch_ahead(call, s, b, h, tile, after);
  int64_t next = call.lists.list_begins[tile.key_list];
  for (;;) {
    take_keys(call, s, b, kv_head, tile, next, false);
    if (!s.keys.count) break;
    scores_of(s.keys.key, s.keys.bits, s.keys.count, s.query_columns, layout.dims, s.scores, s.ahead);
    if (layout.softcap != 0) soften(call, s.keys, s.scores, nullptr);
    if (call.bias) add_bias(call, s, b, h, tile);
    weigh(s.keys, s.scores, top, total, s.values, width);
    gather_rows<CAREFUL>(s.scores, s.keys.bits, s.keys.value, s.keys.count, width, s.values);
  }
  if (!CAREFUL && !are_finite(s.values, ROWS * width)) return attend_tile<true>(call, s, b, h, tile, after);
  end_tile(call, s, b, h, tile, top, total);
}

void attend_tiles(Tasks &tasks, Scratch &scratch, int64_t task) {
  const Call &call = tasks.call;
  int64_t member = task / tasks.chunks, b = member / call.layout.heads, h = member % call.layout.heads;
  const int64_t *range = call.range(h, tasks.stage);
  int64_t first = range[0] + task % tasks.chunks * TILES_OF_TASK;
  int64_t end = first + TILES_OF_TASK < range[1] ? first + TILES_OF_TASK : range[1];
  for (int64_t t = first; t < end; t++) {
    const Tile *tile = call.lists.tiles + t;
    attend_tile<false>(call, scratch, b, h, *tile, tile[t + 1 < end]);
  }
}

void fill_without_keys(const Call &call) {
  const Layout &layout = call.layout;
  for (int64_t b = 0; b < layout.batch; b++)
    for (int64_t h = 0; h < layout.heads; h++)
      for (int64_t query = 0; query < layout.queries; query++) {
        memset(row_of(call.out, layout.out, call.sums_dtype(), b, h, query), 0,
               layout.value_dims * bytes_of(call.sums_dtype()));
        if (call.lse) call.lse[(b * layout.heads + h) * layout.queries + query] = -INFINITY;
      }
}

}  // namespace

// Gives 0, or 1 where there is too little memory. With one stage lse may be null: it is not found then.
extern "C" int64_t LEVEL_NAME(lattend_forward)(const TileLists *lists, const Layout *layout, const void *q,
                                               const void *k, const void *v, const void *real, const float *bias,
                                               void *out, float *lse, int64_t threads) {
  Call call = {*lists,
               *layout,
               static_cast<const char *>(q),
               static_cast<const char *>(k),
               static_cast<const char *>(v),
               static_cast<const uint8_t *>(real),
               static_cast<char *>(out),
               lse,
               nullptr,
               nullptr,
               nullptr,
               nullptr,
               nullptr,
               bias,
               nullptr};
  use_large_pages(*layout, call.out, layout->out, call.sums_dtype(), layout->heads, layout->queries,
                  layout->value_dims);
  if (!lists->covered) fill_without_keys(call);
  for (int64_t stage = 0; stage < lists->stages; stage++) {
    int64_t most = 0;
    for (int64_t h = 0; h < lists->heads; h++) {
      const int64_t *range = call.range(h, stage);
      most = range[1] - range[0] > most ? range[1] - range[0] : most;
    }
    int64_t chunks = (most + TILES_OF_TASK - 1) / TILES_OF_TASK;
    Tasks tasks = {call, attend_tiles, layout->batch * layout->heads * chunks, 0, 0, stage, chunks, nullptr};
    if (run(tasks, threads)) return 1;
  }
  return 0;
}
