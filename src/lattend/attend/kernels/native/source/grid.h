// Recurrent nets on a grid: what a call is given, products of few rows with packed weights, and activations.
//
// Cells of one anti-diagonal do not wait for each other, so their rows are multiplied together, some at a time. A row
// is computed in the same order whatever rows stand beside it: results do not depend on threads.

#pragma once

#include <cstdlib>

#include "vectors.h"

namespace {

// The number that this unit is compiled for: build.py makes one of each.
#ifdef GRID_FLOAT64
typedef double Number;
#define GRID_NAME(name) LEVEL_NAME(name##_float64)
#else
typedef float Number;
#define GRID_NAME(name) LEVEL_NAME(name##_float32)
#endif

constexpr int64_t BYTES = sizeof(Number);
constexpr int GRID_LANES = LANES * 4 / BYTES;
constexpr int GRID_ROWS = LANES == 16 ? 8 : 4;  // rows whose sums stay in registers, with two vectors each
constexpr int GRID_CHUNK = 32;                  // rows whose sums stay in the nearest cache

enum Cell : int64_t { RNN, LSTM, GRU };
enum Activation : int64_t { TANH, RELU, SIGMOID, IDENTITY };

// The layouts of these two are those of nn/grid/native.py.

struct GridShape {
  int64_t cell, activation, directions, batch, rows, cols, channels, size;
  int64_t together;  // images that run side by side,
  int64_t of_task;   // and those that one task takes, a multiple of that
  int64_t flips[4];  // of each direction: 1 along rows, 2 along columns
  void (*parallel)(void (*)(void *), void *, unsigned, unsigned);  // of OpenMP; null where there is none
};

// Null where there is none. Pixels of x, dx and mask are in the order of the image, others in the order of travel.
struct GridTensors {
  const Number *x;      // [batch][rows][cols][channels]
  const uint8_t *mask;  // [batch][rows][cols]
  const Number *into, *bias, *left, *top;  // [directions * gates * size][..]
  const Number *edges[4];  // left, top, and of c left, top: [directions][batch][rows or cols][size]
  Number *h, *c;            // [directions][batch][rows + 1][cols + 1][size], the edges in front
  Number *gates;            // [directions][batch][rows][cols][5 * size]
  const Number *grad_h, *grad_c;  // [directions][batch][rows][cols][size]
  Number *partial;  // [directions][tasks][channels + 2 size + 1][width]
  Number *dx;       // [directions][batch][rows][cols][channels]
  Number *d_into, *d_bias, *d_left, *d_top;
  Number *d_edges[4];
};

#ifdef GRID_FLOAT64

typedef double Numbers __attribute__((vector_size(LANES * 4)));
typedef int64_t Integers __attribute__((vector_size(LANES * 4)));
typedef uint64_t Bits __attribute__((vector_size(LANES * 4)));
typedef Numbers NumbersAnywhere __attribute__((aligned(8), may_alias));

inline Numbers load(const double *at) { return *reinterpret_cast<const NumbersAnywhere *>(at); }
inline void store(double *at, Numbers x) { *reinterpret_cast<NumbersAnywhere *>(at) = x; }
inline Numbers all(double x) { return x - Numbers{}; }

// e^x = scale * (1 + rest), for x from -708 to 709.
struct Exponential {
  Numbers scale, rest;
};

inline Exponential exponential(Numbers x) {
  const Numbers shift = all(6755399441055744.0);  // 1.5 * 2^52: adding it rounds to integers
  Numbers rounded = x * 1.4426950408889634 + shift, power = rounded - shift;
  Numbers r = x - power * 6.93147180369123816490e-01 - power * 1.90821492927058770002e-10;
  // Of (e^r - 1) / r for r within log(2) / 2, the series up to where terms are below the last place
  constexpr double SERIES[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
                               1.0 / 40320,      1.0 / 5040,      1.0 / 720,      1.0 / 120,     1.0 / 24,
                               1.0 / 6,          1.0 / 2,         1.0};
  Numbers y = all(SERIES[0]);
  UNROLLED for (int k = 1; k < 13; k++) y = y * r + SERIES[k];
  return {(Numbers)(((Bits)rounded << 52) + 0x3ff0000000000000u), y * r};
}

inline Numbers clamped(Numbers x, double least, double most) {
  return x > most ? all(most) : x < least ? all(least) : x;
}

inline Numbers exp_of(Numbers x) {
  Exponential e = exponential(clamped(x, -708.0, 709.0));
  return e.scale + e.scale * e.rest;
}

// From e^2x - 1, which has all its places near 0 too; beyond 20 it is 1.
inline Numbers tanh_of(Numbers x) {
  Exponential e = exponential(2.0 * clamped(x, -20.0, 20.0));
  Numbers less_one = e.scale * e.rest + (e.scale - 1.0);
  return less_one / (less_one + 2.0);
}

#else

typedef Floats Numbers;
typedef Ints Integers;

inline Numbers exp_of(Numbers x) {
  Numbers power = x * 1.44269504f;
  return exp2_of(power > 126.0f ? all(126.0f) : power);
}

// Within 3e-7 of it, by a quotient of polynomials; beyond 7.9 it is 1.
inline Numbers tanh_of(Numbers x) {
  const float most = 7.90531110763549805f;
  x = x > most ? all(most) : x < -most ? all(-most) : x;
  Numbers square = x * x, above = all(-2.76076847742355e-16f), below = all(1.19825839466702e-6f);
  above = above * square + 2.00018790482477e-13f;
  above = above * square - 8.60467152213735e-11f;
  above = above * square + 5.12229709037114e-8f;
  above = above * square + 1.48572235717979e-5f;
  above = above * square + 6.37261928875436e-4f;
  above = above * square + 4.89352455891786e-3f;
  below = below * square + 1.18534705686654e-4f;
  below = below * square + 2.26843463243900e-3f;
  below = below * square + 4.89352518554385e-3f;
  return x * above / below;
}

#endif

// Room for at least one number: null means that there is no memory.
inline Number *allocated(int64_t count) {
  return static_cast<Number *>(aligned_alloc(64, (count * BYTES + 64) / 64 * 64));
}

inline Numbers load_part(const Number *at, int64_t count) {
  if (count >= GRID_LANES) return load(at);
  Number found[GRID_LANES] = {};
  memcpy(found, at, count * BYTES);
  return load(found);
}

inline void store_part(Number *at, Numbers x, int64_t count) {
  if (count >= GRID_LANES) return store(at, x);
  Number found[GRID_LANES];
  store(found, x);
  memcpy(at, found, count * BYTES);
}

// Into memory that has room for a whole vector: zeros behind the numbers.
inline void store_padded(Number *at, Numbers x, int64_t count) {
  if (count < GRID_LANES) {
    Integers lane;
    UNROLLED for (int i = 0; i < GRID_LANES; i++) lane[i] = i;
    x = lane < int32_t(count) + Integers{} ? x : Numbers{};
  }
  store(at, x);
}

// Fetches a row towards the nearest cache, to be written or only read: cells of a diagonal lie too far apart for the
// processor to foresee. Without the last line GCC takes this for a function without effect, and drops its calls.
template <bool WRITTEN = false>
inline void fetch(const Number *row, int64_t count) {
  for (int64_t i = 0; i < count; i += 64 / BYTES) __builtin_prefetch(row + i, WRITTEN, 2);
  asm volatile("" : : "r"(row));
}

inline Numbers sigmoid_of(Numbers x) { return 1.0f / (1.0f + exp_of(-x)); }

inline Numbers activated(int64_t kind, Numbers x) {
  if (kind == TANH) return tanh_of(x);
  if (kind == RELU) return x < 0.0f ? Numbers{} : x;
  return kind == SIGMOID ? sigmoid_of(x) : x;
}

// The slope of an activation from what it gave.
inline Numbers slope_of(int64_t kind, Numbers y) {
  if (kind == TANH) return 1.0f - y * y;
  if (kind == RELU) return y > 0.0f ? all(Number(1)) : Numbers{};
  return kind == SIGMOID ? y * (1.0f - y) : all(Number(1));
}

// Rows of numbers, and how many of each are multiplied.
struct Segment {
  const Number *const *rows;
  int64_t length;
};

template <int M, int V>
inline void product_tile(const Segment *segments, int count, int64_t first, const Number *weights, Number *sums,
                         int64_t width) {
  Numbers total[M][V];
  UNROLLED for (int i = 0; i < M; i++)
    UNROLLED for (int v = 0; v < V; v++) total[i][v] = load(sums + i * width + v * GRID_LANES);
  for (int s = 0; s < count; s++) {
    const Number *row[M];
    UNROLLED for (int i = 0; i < M; i++) row[i] = segments[s].rows[first + i];
    for (int64_t k = 0; k < segments[s].length; k++, weights += V * GRID_LANES) {
      Numbers weight[V];
      UNROLLED for (int v = 0; v < V; v++) weight[v] = load(weights + v * GRID_LANES);
      UNROLLED for (int i = 0; i < M; i++) {
        Numbers number = all(row[i][k]);
        UNROLLED for (int v = 0; v < V; v++) total[i][v] += number * weight[v];
      }
    }
  }
  UNROLLED for (int i = 0; i < M; i++)
    UNROLLED for (int v = 0; v < V; v++) store(sums + i * width + v * GRID_LANES, total[i][v]);
}

template <int M, int V>
inline void product_rows(const Segment *segments, int count, int64_t &first, int64_t rows, const Number *weights,
                         Number *sums, int64_t width) {
  for (; first + M <= rows; first += M)
    product_tile<M, V>(segments, count, first, weights, sums + first * width, width);
  if constexpr (M > 1) product_rows<M / 2, V>(segments, count, first, rows, weights, sums, width);
}

// sums[row][n] += sum over segments and k of their rows[row][k] * weights[k][n]; weights as `pack` lays them.
inline void add_products(const Segment *segments, int count, int64_t rows, const Number *weights, int64_t columns,
                         Number *sums, int64_t width) {
  int64_t length = 0, n = 0, first;
  for (int s = 0; s < count; s++) length += segments[s].length;
  for (; n + 2 * GRID_LANES <= columns; n += 2 * GRID_LANES)
    product_rows<GRID_ROWS, 2>(segments, count, first = 0, rows, weights + n * length, sums + n, width);
  if (n < columns) product_rows<GRID_ROWS, 1>(segments, count, first = 0, rows, weights + n * length, sums + n, width);
}

// Weights [length][columns], given by a function of both, in blocks of two vectors of columns.
template <class At>
inline Number *pack(Number *to, int64_t length, int64_t columns, At at) {
  for (int64_t n = 0; n < columns;) {
    int64_t block = columns - n >= 2 * GRID_LANES ? 2 * GRID_LANES : GRID_LANES;
    for (int64_t k = 0; k < length; k++)
      for (int64_t j = 0; j < block; j++) *to++ = at(k, n + j);
    n += block;
  }
  return to;
}

template <int M, int V>
inline void outer_tile(const Number *const *rows, const Number *const *grads, int64_t count, int64_t k, int64_t n,
                       Number *sums, int64_t width) {
  Numbers total[M][V];
  UNROLLED for (int i = 0; i < M; i++)
    UNROLLED for (int v = 0; v < V; v++) total[i][v] = load(sums + (k + i) * width + n + v * GRID_LANES);
  for (int64_t p = 0; p < count; p++) {
    Numbers grad[V];
    UNROLLED for (int v = 0; v < V; v++) grad[v] = load(grads[p] + n + v * GRID_LANES);
    UNROLLED for (int i = 0; i < M; i++) {
      Numbers number = all(rows[p][k + i]);
      UNROLLED for (int v = 0; v < V; v++) total[i][v] += number * grad[v];
    }
  }
  UNROLLED for (int i = 0; i < M; i++)
    UNROLLED for (int v = 0; v < V; v++) store(sums + (k + i) * width + n + v * GRID_LANES, total[i][v]);
}

template <int M, int V>
inline void outer_rows(const Number *const *rows, const Number *const *grads, int64_t count, int64_t &k, int64_t length,
                       int64_t n, Number *sums, int64_t width) {
  for (; k + M <= length; k += M) outer_tile<M, V>(rows, grads, count, k, n, sums, width);
  if constexpr (M > 1) outer_rows<M / 2, V>(rows, grads, count, k, length, n, sums, width);
}

// sums[k][n] += sum over p of rows[p][k] * grads[p][n]: the gradient of weights.
inline void add_outer(const Number *const *rows, int64_t length, const Number *const *grads, int64_t count,
                      Number *sums, int64_t width) {
  int64_t n = 0, k;
  for (; n + 2 * GRID_LANES <= width; n += 2 * GRID_LANES)
    outer_rows<GRID_ROWS, 2>(rows, grads, count, k = 0, length, n, sums, width);
  if (n < width) outer_rows<GRID_ROWS, 1>(rows, grads, count, k = 0, length, n, sums, width);
}

struct GridCall {
  const GridShape &shape;
  const GridTensors &t;
  int64_t size, padded, gates, groups, span;  // of a state, in whole vectors; gates; groups of sums; steps
  Number *packed;                             // weights of all directions

  GridCall(const GridShape &shape, const GridTensors &t) : shape(shape), t(t), packed(nullptr) {
    size = shape.size;
    padded = (size + GRID_LANES - 1) / GRID_LANES * GRID_LANES;
    gates = shape.cell == RNN ? 1 : shape.cell == LSTM ? 5 : 4;
    groups = shape.cell == RNN ? 1 : 5;  // a gru sums up what its n gets from x and from states apart
    span = shape.rows + shape.cols - 1;
  }
  ~GridCall() { free(packed); }

  int64_t width() const { return gates * padded; }
  // The tasks of one direction; an empty batch has none.
  int64_t tasks() const { return shape.batch ? (shape.batch + shape.of_task - 1) / shape.of_task : 0; }
  int64_t image(int64_t d, int64_t b) const { return d * shape.batch + b; }
  int64_t pixel(int64_t d, int64_t b, int64_t row, int64_t col) const {
    return (image(d, b) * shape.rows + row) * shape.cols + col;
  }
  // The state of a pixel; row or col -1 are the edges.
  int64_t state(int64_t d, int64_t b, int64_t row, int64_t col) const {
    return ((image(d, b) * (shape.rows + 1) + row + 1) * (shape.cols + 1) + col + 1) * size;
  }
  // Where the image has the pixel that a direction meets there.
  int64_t seen(int64_t d, int64_t b, int64_t row, int64_t col) const {
    int64_t flips = shape.flips[d];
    row = flips & 1 ? shape.rows - 1 - row : row;
    col = flips & 2 ? shape.cols - 1 - col : col;
    return (b * shape.rows + row) * shape.cols + col;
  }
  bool there(int64_t d, int64_t b, int64_t row, int64_t col) const {
    return !t.mask || t.mask[seen(d, b, row, col)];
  }

  // Weights forward: of all gates from x, left and top; of a gru's n from x, and from left and top, on their own.
  int64_t inputs() const { return shape.channels + 2 * size; }
  int64_t forward_weights() const { return inputs() * width(); }

  Number weight(int64_t d, int64_t gate, int64_t j, int64_t k) const {
    if (j >= size) return 0.0f;
    int64_t row = (d * gates + gate) * size + j;
    if (k < shape.channels) return t.into[row * shape.channels + k];
    k -= shape.channels;
    return k < size ? t.left[row * size + k] : t.top[row * size + k - size];
  }

  Number *pack_forward(int64_t d, Number *to) const {
    auto at = [&](int64_t gate, int64_t from) {
      return [=](int64_t k, int64_t n) { return weight(d, gate + n / padded, n % padded, from + k); };
    };
    if (shape.cell != GRU) return pack(to, inputs(), width(), at(0, 0));
    to = pack(to, inputs(), 3 * padded, at(0, 0));
    to = pack(to, shape.channels, padded, at(3, 0));
    return pack(to, 2 * size, padded, at(3, shape.channels));
  }
};

// The cells of one diagonal of a few images, up to GRID_CHUNK at a time.
struct Cells {
  int64_t count;
  int64_t b[GRID_CHUNK], row[GRID_CHUNK], col[GRID_CHUNK];
  const Number *x[GRID_CHUNK], *left[GRID_CHUNK], *top[GRID_CHUNK];
};

// Goes through the diagonals of images first .. end, in rising or falling order, and calls work(cells, step).
template <class Work>
inline void walk(const GridCall &call, int64_t d, int64_t first, int64_t end, bool back, Cells &cells, Work work) {
  const GridShape &shape = call.shape;
  for (int64_t turn = 0; turn < call.span; turn++) {
    int64_t step = back ? call.span - 1 - turn : turn;
    int64_t begin = step >= shape.cols ? step - shape.cols + 1 : 0, stop = step < shape.rows ? step + 1 : shape.rows;
    cells.count = 0;
    for (int64_t b = first; b < end; b++)
      for (int64_t row = begin; row < stop; row++) {
        int64_t i = cells.count++, col = step - row;
        cells.b[i] = b, cells.row[i] = row, cells.col[i] = col;
        cells.x[i] = call.t.x + call.seen(d, b, row, col) * shape.channels;
        cells.left[i] = call.t.h + call.state(d, b, row, col - 1);
        cells.top[i] = call.t.h + call.state(d, b, row - 1, col);
        if (cells.count == GRID_CHUNK || (b == end - 1 && row == stop - 1)) {
          work(step);
          cells.count = 0;
        }
      }
  }
}

// The sums of all groups of gates, [cells][groups * padded].
inline void add_sums(const GridCall &call, int64_t d, const Cells &cells, const Number *weights, Number *sums) {
  int64_t width = call.groups * call.padded, c = call.shape.channels;
  for (int64_t i = 0; i < cells.count; i++) {
    memset(sums + i * width, 0, width * BYTES);
    if (!call.t.bias) continue;
    const Number *bias = call.t.bias + d * call.gates * call.size;
    for (int64_t gate = 0; gate < call.gates; gate++)
      memcpy(sums + i * width + gate * call.padded, bias + gate * call.size, call.size * BYTES);
  }
  Segment all[] = {{cells.x, c}, {cells.left, call.size}, {cells.top, call.size}};
  if (call.shape.cell != GRU) return add_products(all, 3, cells.count, weights, width, sums, width);
  add_products(all, 3, cells.count, weights, 3 * call.padded, sums, width);
  weights += call.inputs() * 3 * call.padded;
  add_products(all, 1, cells.count, weights, call.padded, sums + 3 * call.padded, width);
  add_products(all + 1, 2, cells.count, weights + c * call.padded, call.padded, sums + 4 * call.padded, width);
}

// The sums of a cell become its gates, in place: i, f, l, g, o of an lstm; r, z, l, n, m of a gru.
inline void open_gates(int64_t cell, Number *sums, int64_t padded) {
  for (int64_t v = 0; v < padded; v += GRID_LANES) {
    Number *at = sums + v;
    Numbers a = sigmoid_of(load(at));
    store(at, a);
    store(at + padded, sigmoid_of(load(at + padded)));
    store(at + 2 * padded, sigmoid_of(load(at + 2 * padded)));
    if (cell == LSTM) {
      store(at + 3 * padded, tanh_of(load(at + 3 * padded)));
      store(at + 4 * padded, sigmoid_of(load(at + 4 * padded)));
    } else {
      store(at + 3 * padded, tanh_of(load(at + 3 * padded) + a * load(at + 4 * padded)));
    }
  }
}

// Tasks that threads take one after another; which takes which makes no difference to the results.
struct GridTasks {
  const GridCall &call;
  void (*work)(const GridCall &, Number *memory, int64_t d, int64_t task);
  int64_t scratch;  // numbers that a thread works in
  int64_t next, failed;
};

inline void take_grid_tasks(void *given) {
  GridTasks &tasks = *static_cast<GridTasks *>(given);
  int64_t each = tasks.call.tasks(), count = each * tasks.call.shape.directions;
  Number *memory = allocated(tasks.scratch);
  if (!memory) __atomic_store_n(&tasks.failed, 1, __ATOMIC_RELAXED);
  while (memory) {
    int64_t task = __atomic_fetch_add(&tasks.next, 1, __ATOMIC_RELAXED);
    if (task >= count) break;
    tasks.work(tasks.call, memory, task / each, task % each);
  }
  free(memory);
}

inline int64_t run_grid(GridTasks &tasks, int64_t threads) {
  auto parallel = tasks.call.shape.parallel;
  int64_t count = tasks.call.tasks() * tasks.call.shape.directions;
  if (threads > count) threads = count;
  if (threads > 1 && parallel)
    parallel(take_grid_tasks, &tasks, unsigned(threads), 0);
  else
    take_grid_tasks(&tasks);
  return tasks.failed;
}

}  // namespace
