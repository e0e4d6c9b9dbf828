// One step of decoding: a new key and value of each row take their slot, and one query attends to the keys in slots.

#include <cmath>

#include "scoring.h"
#include "terms.h"

namespace {

constexpr int64_t SCORES = BLOCK + LANES;  // of a head, with room for a whole vector behind the last
constexpr int64_t MOST_ALONE = 1 << 19;  // multiply-adds that one thread does sooner than several

// The layout of this is that of decode/native_step.py.

struct Step {
  int64_t batch, heads, kv_heads, dims, value_dims, dtype;
  Strides q, k, v, keys, values, out;
  int64_t positions_by_row;  // 0 where one table is for all rows
  // Of a static cache, whose slots are known from positions; ring is 0 where the host says which slot it is
  int64_t pinned, ring, reach, length;
  double scale, softcap;
  Program condition;  // which of the keys in slots are attended; all where it is empty
  int64_t by_head;    // whether heads differ in that
  Program bias;
  Table tables[TABLES];
  void (*parallel)(void (*)(void *), void *, unsigned, unsigned);  // of OpenMP; null where there is none

  Dtype kind() const { return Dtype(dtype); }
  int64_t group() const { return heads / kv_heads; }
};

// A static cache's lengths, the greatest that they ever were, and the number of tokens of the last call.
struct State {
  int64_t *now, *high, *drafted;
};

struct Decoded {
  const Step &step;
  const char *q, *keys, *values;
  const int64_t *positions;
  State state;
  char *out;
  float *lse;  // [batch][heads], or null
  const void *const *tensors;
  int64_t position, slots;  // the query's, where there is no state
  int64_t next, failed;
};

int64_t slot_of(const Step &step, int64_t position) {
  return position < step.pinned ? position : step.pinned + (position - step.pinned) % step.ring;
}

void put(const Step &step, const char *from, const Strides &by, int64_t dims, char *to, const Strides &into, int64_t b,
         int64_t slot) {
  for (int64_t h = 0; h < step.kv_heads; h++)
    memcpy(row_of(to, into, step.kind(), b, h, slot), row_of(from, by, step.kind(), b, h, 0),
           dims * bytes_of(step.kind()));
}

// The keys of some slots that a query attends to: where they lie, their positions, and their rows as floats.
struct Attended {
  int64_t count, slots[BLOCK], positions[BLOCK];
  const float *keys[BLOCK + LANES], *values[BLOCK + LANES];
};

struct Room {
  Attended keys;
  Column stack[DEPTH];
  float *memory, *queries, *sums, *top, *total, *key_copies, *value_copies;

  explicit Room(const Step &step) {
    int64_t dims = padded(step.dims), value_dims = padded(step.value_dims), group = padded(step.group());
    int64_t sizes[] = {group * dims, group * value_dims, group, group, BLOCK * dims, BLOCK * value_dims};
    float **parts[] = {&queries, &sums, &top, &total, &key_copies, &value_copies};
    memory = allocated(sizes, parts);
  }
  ~Room() { free(memory); }
};

// Rows of slots as floats; copied where they are no floats or end within a vector.
void find_rows(const Attended &keys, const char *from, int64_t by_row, Dtype dtype, int64_t dims, float *copies,
               const float **rows) {
  bool in_place = dtype == FLOAT32 && dims % 16 == 0;
  for (int64_t j = 0; j < keys.count; j++) {
    const char *row = from + keys.slots[j] * by_row * bytes_of(dtype);
    float *copy = copies + j * padded(dims);
    if (!in_place) read_row(dtype, row, dims, 1.0f, copy);
    rows[j] = in_place ? reinterpret_cast<const float *>(row) : copy;
  }
  for (int64_t j = keys.count; j < keys.count + LANES; j++) rows[j] = rows[0];
}

// Those of BLOCK slots that some head of the group attends to.
void take_keys(const Decoded &call, Room &room, int64_t b, int64_t kv_head, int64_t query, int64_t first) {
  const Step &step = call.step;
  Attended &keys = room.keys;
  int64_t end = first + BLOCK < call.slots ? first + BLOCK : call.slots;
  keys.count = 0;
  const int64_t *positions = call.positions ? call.positions + b * step.positions_by_row : nullptr;
  for (int64_t slot = first; slot < end; slot++) {
    int64_t position = positions ? positions[slot] : slot;
    keys.slots[keys.count] = slot;
    keys.positions[keys.count] = position;
    keys.count += position >= 0;
  }
  if (step.condition.count && keys.count) {
    int64_t some[BLOCK] = {}, heads = step.by_head ? step.group() : 1, count = 0;
    for (int64_t h = 0; h < heads; h++) {
      Places at = {b, kv_head * step.group() + h, query, keys.count, keys.positions, step.tables, call.tensors};
      evaluate(step.condition, at, room.stack);
      for (int64_t j = 0; j < keys.count; j++) some[j] |= room.stack->whole[j];
    }
    for (int64_t j = 0; j < keys.count; j++) {
      keys.slots[count] = keys.slots[j];
      keys.positions[count] = keys.positions[j];
      count += some[j];
    }
    keys.count = count;
  }
  if (!keys.count) return;
  find_rows(keys, row_of(call.keys, step.keys, step.kind(), b, kv_head, 0), step.keys.by_row, step.kind(), step.dims,
            room.key_copies, keys.keys);
  find_rows(keys, row_of(call.values, step.values, step.kind(), b, kv_head, 0), step.values.by_row, step.kind(),
            step.value_dims, room.value_copies, keys.values);
}

// scores[head][key] = keys[key] · queries[head], a whole vector of pairs at a time: keys are read once for HEADS.
template <int HEADS>
void score(const Attended &keys, const float *queries, int64_t width, float *scores) {
  constexpr int KEYS = LANES / HEADS;
  for (int64_t first = 0; first < keys.count; first += KEYS) {
    const float *const *rows = keys.keys + first;
    Floats sum[LANES];
    UNROLLED for (int i = 0; i < LANES; i++) sum[i] = Floats{};
    for (int64_t d = 0; d < width; d += LANES) {
      Floats key[KEYS];
      UNROLLED for (int i = 0; i < KEYS; i++) key[i] = load(rows[i] + d);
      UNROLLED for (int h = 0; h < HEADS; h++) {
        Floats query = load(queries + h * width + d);
        UNROLLED for (int i = 0; i < KEYS; i++) sum[h * KEYS + i] += key[i] * query;
      }
    }
    exchange_all<1>(sum);
    UNROLLED for (int i = 1; i < LANES; i++) sum[0] += sum[i];
    UNROLLED for (int h = 0; h < HEADS; h++)
      UNROLLED for (int i = 0; i < KEYS; i++) scores[h * SCORES + first + i] = sum[0][h * KEYS + i];
  }
}

// What the scores of a head become before they are weights: softened, with a bias, -inf where they are not attended.
void adjust(const Decoded &call, Room &room, int64_t b, int64_t head, int64_t query, float *scores) {
  const Step &step = call.step;
  const Attended &keys = room.keys;
  Places at = {b, head, query, keys.count, keys.positions, step.tables, call.tensors};
  if (step.softcap != 0) {
    float cap = float(step.softcap), share = float(1 / step.softcap);
    for (int64_t j = 0; j < keys.count; j += LANES) store(scores + j, tanh_of(load(scores + j) * share) * cap);
  }
  if (step.bias.count) {
    evaluate(step.bias, at, room.stack);
    for (int64_t j = 0; j < keys.count; j++) scores[j] += float(room.stack->real[j]);
  }
  if (step.by_head) {
    evaluate(step.condition, at, room.stack);
    for (int64_t j = 0; j < keys.count; j++) scores[j] = room.stack->whole[j] ? scores[j] : BLOCKED;
  }
  for (int64_t j = keys.count; j < keys.count + LANES; j++) scores[j] = BLOCKED;
}

// Online softmax: turns the scores of a head into weights, and gives by what its sums are to be multiplied.
float weigh(const Attended &keys, float *scores, float &top, float &total) {
  float highest = top;
  Floats largest = all(top);
  for (int64_t j = 0; j < keys.count; j += LANES) largest = larger(load(scores + j), largest);
  for (int i = 0; i < LANES; i++) highest = largest[i] > highest ? largest[i] : highest;
  float taken = highest == BLOCKED ? 0.0f : highest;  // finite, so that no difference of two is NaN
  float kept = exp2_of(all((top - taken) * LOG2E))[0];
  Floats sum = Floats{};
  for (int64_t j = 0; j < keys.count; j += LANES) {
    Floats weight = exp2_of((load(scores + j) - taken) * LOG2E);
    store(scores + j, weight);
    sum += weight;
  }
  total *= kept;
  for (int i = 0; i < LANES; i++) total += sum[i];
  top = highest;
  return kept;
}

template <int HEADS, int VECTORS>
void add_columns(const Attended &keys, const float *weights, const float *kept, int64_t column, int64_t width,
                 float *sums) {
  Floats sum[HEADS][VECTORS];
  UNROLLED for (int h = 0; h < HEADS; h++)
    UNROLLED for (int v = 0; v < VECTORS; v++) sum[h][v] = load(sums + h * width + column + v * LANES) * kept[h];
  for (int64_t j = 0; j < keys.count; j++) {
    Floats row[VECTORS];
    UNROLLED for (int v = 0; v < VECTORS; v++) row[v] = load(keys.values[j] + column + v * LANES);
    UNROLLED for (int h = 0; h < HEADS; h++) {
      Floats weight = all(weights[h * SCORES + j]);
      UNROLLED for (int v = 0; v < VECTORS; v++) sum[h][v] += weight * row[v];
    }
  }
  UNROLLED for (int h = 0; h < HEADS; h++)
    UNROLLED for (int v = 0; v < VECTORS; v++) store(sums + h * width + column + v * LANES, sum[h][v]);
}

// The keys that were taken, for HEADS heads of the group from the first on.
template <int HEADS>
void attend_heads(const Decoded &call, Room &room, int64_t b, int64_t kv_head, int64_t query, int64_t first) {
  const Step &step = call.step;
  int64_t width = padded(step.dims), value_width = padded(step.value_dims), column = 0;
  float scores[HEADS * SCORES], kept[HEADS], *sums = room.sums + first * value_width;
  score<HEADS>(room.keys, room.queries + first * width, width, scores);
  for (int h = 0; h < HEADS; h++) {
    adjust(call, room, b, kv_head * step.group() + first + h, query, scores + h * SCORES);
    kept[h] = weigh(room.keys, scores + h * SCORES, room.top[first + h], room.total[first + h]);
  }
  for (; column + BLOCK_VECTORS * LANES <= value_width; column += BLOCK_VECTORS * LANES)
    add_columns<HEADS, BLOCK_VECTORS>(room.keys, scores, kept, column, value_width, sums);
  for (; column < value_width; column += LANES)
    add_columns<HEADS, 1>(room.keys, scores, kept, column, value_width, sums);
}

// Whether a query may reach a key whose slot another has taken.
bool is_gone(const Decoded &call, int64_t b, int64_t query) {
  const Step &step = call.step;
  if (!step.ring) return false;
  int64_t newest = call.state.high[b] - step.ring - 1;  // of the positions that are overwritten
  return (newest >= step.pinned && query - step.reach <= newest) || query >= step.length;
}

// The heads of one kv head.
void attend(const Decoded &call, Room &room, int64_t b, int64_t kv_head) {
  const Step &step = call.step;
  int64_t group = step.group(), width = padded(step.dims), value_width = padded(step.value_dims);
  int64_t query = step.ring ? call.state.now[b] - 1 : call.position;
  for (int64_t h = 0; h < group; h++) {
    read_row(step.kind(), row_of(call.q, step.q, step.kind(), b, kv_head * group + h, 0), step.dims,
             float(step.scale), room.queries + h * width);
    room.top[h] = BLOCKED;
    room.total[h] = 0;
  }
  memset(room.sums, 0, group * value_width * sizeof(float));
  for (int64_t first = 0; first < call.slots; first += BLOCK) {
    take_keys(call, room, b, kv_head, query, first);
    if (!room.keys.count) continue;
    int64_t h = 0;
    for (; h + 4 <= group; h += 4) attend_heads<4>(call, room, b, kv_head, query, h);
    for (; h + 2 <= group; h += 2) attend_heads<2>(call, room, b, kv_head, query, h);
    for (; h < group; h++) attend_heads<1>(call, room, b, kv_head, query, h);
  }
  bool gone = is_gone(call, b, query);
  for (int64_t h = 0; h < group; h++) {
    int64_t head = kv_head * group + h;
    float *sums = room.sums + h * value_width, total = room.total[h];
    float share = gone ? NAN : total == 0 ? 0.0f : 1 / total;
    for (int64_t d = 0; d < value_width; d += LANES) store(sums + d, load(sums + d) * share);
    write_row(step.kind(), sums, step.value_dims, row_of(call.out, step.out, step.kind(), b, head, 0));
    if (call.lse) call.lse[b * step.heads + head] = gone ? NAN : total == 0 ? -INFINITY : room.top[h] + logf(total);
  }
}

void attend_some(void *given) {
  Decoded &call = *static_cast<Decoded *>(given);
  Room room(call.step);
  if (!room.memory) {
    __atomic_store_n(&call.failed, 1, __ATOMIC_RELAXED);
    return;
  }
  for (;;) {
    int64_t task = __atomic_fetch_add(&call.next, 1, __ATOMIC_RELAXED);
    if (task >= call.step.batch * call.step.kv_heads) return;
    attend(call, room, task / call.step.kv_heads, task % call.step.kv_heads);
  }
}

}  // namespace

// Gives 0, or 1 where there is too little memory. `position` and `slot` are those of the new token in a cache that the
// host directs, `slot` -1 where its key has been put there; `slots` is how many are in use.
extern "C" int64_t LEVEL_NAME(lattend_decode)(
    const Step *step, const void *q, const void *k, const void *v, void *keys, void *values, int64_t *positions,
    int64_t *now, int64_t *high, int64_t *drafted, void *out, float *lse, const void *table0, const void *table1,
    const void *table2, const void *table3, const void *table4, const void *table5, int64_t position, int64_t slot,
    int64_t slots, int64_t threads) {
  const void *tensors[TABLES] = {table0, table1, table2, table3, table4, table5};
  for (int64_t b = 0; b < step->batch && (step->ring || slot >= 0); b++) {
    int64_t at = step->ring ? now[b] : position, into = step->ring ? slot_of(*step, at) : slot;
    put(*step, static_cast<const char *>(k), step->k, step->dims, static_cast<char *>(keys), step->keys, b, into);
    put(*step, static_cast<const char *>(v), step->v, step->value_dims, static_cast<char *>(values), step->values, b,
        into);
    if (!step->ring) continue;
    positions[b * step->positions_by_row + into] = at;
    now[b] = at + 1;
    high[b] = high[b] > now[b] ? high[b] : now[b];
    drafted[b] = 1;
  }
  Decoded call = {*step, static_cast<const char *>(q), static_cast<const char *>(keys),
                  static_cast<const char *>(values), positions, {now, high, drafted}, static_cast<char *>(out), lse,
                  tensors, position, slots, 0, 0};
  int64_t tasks = step->batch * step->kv_heads, work = step->batch * step->heads * slots * (step->dims + step->value_dims);
  if (work <= MOST_ALONE) threads = 1;
  if (threads > tasks) threads = tasks;
  if (threads > 1 && step->parallel)
    step->parallel(attend_some, &call, unsigned(threads), 0);
  else
    attend_some(&call);
  return call.failed;
}
