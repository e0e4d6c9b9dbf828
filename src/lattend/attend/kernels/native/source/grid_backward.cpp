// The recurrence over a grid, backward: from the last diagonal to the first, with the gradients of the weights.
//
// What a cell hands to the cells left of it and above is held for one diagonal: gradients at its sums, and at the
// state that an lstm or gru keeps. Each task sums up gradients of weights on its own; they are added in the tasks' order.

#include "grid.h"

namespace {

// The memory of one thread. Rings have a part for this diagonal and one for that after it.
struct Scratch {
  Number *sums = nullptr, *gates = nullptr;  // [GRID_CHUNK][padded], [GRID_CHUNK][groups * padded]
  Number *inputs = nullptr;                  // [GRID_CHUNK][channels, in whole vectors]
  Number *slopes = nullptr;                  // [GRID_CHUNK][width] at W_in x of a gru; elsewhere these are `hidden`
  Number *nothing = nullptr;                 // [width] zeros
  Number *hidden = nullptr;                  // a ring [2][together][rows][width]
  Number *carried[2] = {};                   // rings [2][together][rows][padded], to the left and up

  static int64_t whole(int64_t count) { return (count + GRID_LANES - 1) / GRID_LANES * GRID_LANES; }

  // Lays the parts out in this memory, if there is some, and gives how many numbers they take.
  int64_t lay(const GridCall &call, Number *memory) {
    int64_t ring = 2 * call.shape.together * call.shape.rows, total = 0;
    auto part = [&](Number *&to, int64_t count) {
      if (memory) to = memory + total;
      total += count;
    };
    part(sums, GRID_CHUNK * call.padded);
    part(gates, GRID_CHUNK * call.groups * call.padded);
    part(inputs, GRID_CHUNK * whole(call.shape.channels));
    part(slopes, GRID_CHUNK * call.width());
    part(nothing, call.width());
    part(hidden, ring * call.width());
    part(carried[0], ring * call.padded);
    part(carried[1], ring * call.padded);
    return total;
  }
};

// Weights backward: of both states from the sums, then of x from the sums, behind those of forward.
int64_t state_weights(const GridCall &call) { return 2 * call.width() * call.padded; }
int64_t input_weights(const GridCall &call) { return call.width() * Scratch::whole(call.shape.channels); }
int64_t all_weights(const GridCall &call) {
  return call.forward_weights() + state_weights(call) + input_weights(call);
}

void pack_all(const GridCall &call, int64_t d, Number *to) {
  int64_t c = call.shape.channels, size = call.size, width = call.width(), padded = call.padded;
  to = call.pack_forward(d, to);
  to = pack(to, 2 * width, padded, [&](int64_t k, int64_t n) {
    int64_t row = k % width;
    return n < size ? call.weight(d, row / padded, row % padded, c + k / width * size + n) : 0.0f;
  });
  pack(to, width, Scratch::whole(c),
       [&](int64_t k, int64_t n) { return n < c ? call.weight(d, k / padded, k % padded, n) : 0.0f; });
}

// Where a cell stands, and the rows that it reads and writes.
struct Place {
  int64_t d, b, row, col;
  const Number *grad;      // [padded] at h
  const Number *gates;     // [5 * padded]
  const Number *back[2];   // what the cells after it hand back of the kept state: from the right, from below
  Number *hidden, *pre;    // [width] gradients at the sums: of states, and of x
  Number *carried[2];
};

void end_rnn(const GridCall &call, const Place &p) {
  const Number *h = call.t.h + call.state(p.d, p.b, p.row, p.col);
  for (int64_t v = 0; v < call.size; v += GRID_LANES) {
    Numbers y = load_part(h + v, call.size - v);
    store_padded(p.hidden + v, load(p.grad + v) * slope_of(call.shape.activation, y), call.size - v);
  }
}

void end_lstm(const GridCall &call, const Place &p) {
  const GridTensors &t = call.t;
  int64_t padded = call.padded, pixel = call.pixel(p.d, p.b, p.row, p.col) * call.size;
  const Number *c = t.c + call.state(p.d, p.b, p.row, p.col), *left = t.c + call.state(p.d, p.b, p.row, p.col - 1);
  const Number *top = t.c + call.state(p.d, p.b, p.row - 1, p.col);
  for (int64_t v = 0; v < call.size; v += GRID_LANES) {
    int64_t count = call.size - v;
    const Number *gate = p.gates + v;
    Numbers i = load(gate), f = load(gate + padded), share = load(gate + 2 * padded), g = load(gate + 3 * padded);
    Numbers o = load(gate + 4 * padded), out = tanh_of(load_part(c + v, count)), dh = load(p.grad + v);
    Numbers above = load_part(top + v, count), apart = load_part(left + v, count) - above;
    Numbers dc = dh * o * (1.0f - out * out) + load(p.back[0] + v) + load(p.back[1] + v);
    if (t.grad_c) dc += load_part(t.grad_c + pixel + v, count);
    Number *to = p.hidden + v;
    store_padded(to, dc * g * i * (1.0f - i), count);
    store_padded(to + padded, dc * (above + share * apart) * f * (1.0f - f), count);
    store_padded(to + 2 * padded, dc * f * apart * share * (1.0f - share), count);
    store_padded(to + 3 * padded, dc * i * (1.0f - g * g), count);
    store_padded(to + 4 * padded, dh * out * o * (1.0f - o), count);
    Numbers kept = dc * f;
    store(p.carried[0] + v, kept * share);
    store(p.carried[1] + v, kept * (1.0f - share));
  }
}

void end_gru(const GridCall &call, const Place &p) {
  int64_t padded = call.padded;
  const Number *left = call.t.h + call.state(p.d, p.b, p.row, p.col - 1);
  const Number *top = call.t.h + call.state(p.d, p.b, p.row - 1, p.col);
  for (int64_t v = 0; v < call.size; v += GRID_LANES) {
    int64_t count = call.size - v;
    const Number *gate = p.gates + v;
    Numbers r = load(gate), z = load(gate + padded), share = load(gate + 2 * padded), n = load(gate + 3 * padded);
    Numbers m = load(gate + 4 * padded), dh = load(p.grad + v) + load(p.back[0] + v) + load(p.back[1] + v);
    Numbers above = load_part(top + v, count), apart = load_part(left + v, count) - above;
    Numbers dn = dh * (1.0f - z) * (1.0f - n * n);
    Numbers of_gates[] = {dn * m * r * (1.0f - r), dh * (above + share * apart - n) * z * (1.0f - z),
                         dh * z * apart * share * (1.0f - share)};
    for (int gate = 0; gate < 3; gate++) {
      store_padded(p.hidden + gate * padded + v, of_gates[gate], count);
      store_padded(p.pre + gate * padded + v, of_gates[gate], count);
    }
    store_padded(p.hidden + 3 * padded + v, dn * r, count);
    store_padded(p.pre + 3 * padded + v, dn, count);
    Numbers kept = dh * z;
    store(p.carried[0] + v, kept * share);
    store(p.carried[1] + v, kept * (1.0f - share));
  }
}

// The gradients at states on an edge, which the cell beside it hands on: 0 on the left, 1 above.
void end_edge(const GridCall &call, const Place &p, int side, const Number *weights, Scratch &s) {
  Number *to = call.t.d_edges[side], *to_c = call.t.d_edges[2 + side];
  if (!to && !to_c) return;
  int64_t length = side ? call.shape.cols : call.shape.rows, size = call.size;
  int64_t at = (call.image(p.d, p.b) * length + (side ? p.col : p.row)) * size;
  const Number *from[2] = {side ? s.nothing : p.hidden, side ? p.hidden : s.nothing};
  Segment both[] = {{from, call.width()}, {from + 1, call.width()}};
  Number *sums = s.sums;  // of a chunk that is done
  memset(sums, 0, call.padded * BYTES);
  if (call.shape.cell == GRU) memcpy(sums, p.carried[side], size * BYTES);
  add_products(both, 2, 1, weights, call.padded, sums, call.padded);
  if (to) memcpy(to + at, sums, size * BYTES);
  if (to_c) memcpy(to_c + at, p.carried[side], size * BYTES);
}

struct Backward {
  const GridCall &call;
  Scratch &s;
  int64_t d, first;  // the direction, and the first image of those side by side
  const Cells &cells;
  const Number *weights;
  Number *partial;

  Number *ring(Number *memory, int64_t width, int64_t step, int64_t i, int64_t row) const {
    int64_t together = call.shape.together, rows = call.shape.rows;
    return memory + (((step & 1) * together + cells.b[i] - first) * rows + row) * width;
  }

  Place place(int64_t step, int64_t i) const {
    int64_t row = cells.row[i], col = cells.col[i], padded = call.padded;
    bool right = col + 1 < call.shape.cols, below = row + 1 < call.shape.rows;
    Place p = {d, cells.b[i], row, col, s.sums + i * padded, s.gates + i * call.groups * padded,
               {right ? ring(s.carried[0], padded, step + 1, i, row) : s.nothing,
                below ? ring(s.carried[1], padded, step + 1, i, row + 1) : s.nothing},
               ring(s.hidden, call.width(), step, i, row), nullptr,
               {ring(s.carried[0], padded, step, i, row), ring(s.carried[1], padded, step, i, row)}};
    p.pre = call.shape.cell == GRU ? s.slopes + i * call.width() : p.hidden;
    return p;
  }

  void find_gates(int64_t i) const {
    const Number *from = call.t.gates + call.pixel(d, cells.b[i], cells.row[i], cells.col[i]) * 5 * call.size;
    Number *to = s.gates + i * 5 * call.padded;
    for (int64_t gate = 0; gate < 5; gate++)
      for (int64_t v = 0; v < call.size; v += GRID_LANES)
        store(to + gate * call.padded + v, load_part(from + gate * call.size + v, call.size - v));
  }

  // What a cell of the next diagonal will be the first to read.
  void fetch_cell(int64_t b, int64_t row, int64_t col) const {
    const GridTensors &t = call.t;
    int64_t pixel = call.pixel(d, b, row, col), before = call.state(d, b, row, col - 1);
    if (t.gates) fetch(t.gates + pixel * 5 * call.size, 5 * call.size);
    if (t.grad_h) fetch(t.grad_h + pixel * call.size, call.size);
    if (t.c) fetch(t.c + before, call.size);
    fetch(t.h + before, call.size);
  }

  // The gradients at h: those given, and what the cells on the right and below hand back.
  void add_states(int64_t step) const {
    const Number *right[GRID_CHUNK], *below[GRID_CHUNK];
    int64_t width = call.width(), size = call.size, padded = call.padded;
    for (int64_t i = 0; i < cells.count; i++) {
      int64_t row = cells.row[i], col = cells.col[i];
      right[i] = col + 1 < call.shape.cols ? ring(s.hidden, width, step + 1, i, row) : s.nothing;
      below[i] = row + 1 < call.shape.rows ? ring(s.hidden, width, step + 1, i, row + 1) : s.nothing;
      const Number *grad = call.t.grad_h ? call.t.grad_h + call.pixel(d, cells.b[i], row, col) * size : s.nothing;
      for (int64_t v = 0; v < padded; v += GRID_LANES) store(s.sums + i * padded + v, load_part(grad + v, size - v));
    }
    Segment both[] = {{right, width}, {below, width}};
    add_products(both, 2, cells.count, weights + call.forward_weights(), padded, s.sums, padded);
  }

  void end_cell(const Place &p) const {
    if (call.there(d, p.b, p.row, p.col)) {
      if (call.shape.cell == RNN) return end_rnn(call, p);
      return call.shape.cell == LSTM ? end_lstm(call, p) : end_gru(call, p);
    }
    memset(p.hidden, 0, call.width() * BYTES);
    memset(p.pre, 0, call.width() * BYTES);
    memset(p.carried[0], 0, call.padded * BYTES);
    memset(p.carried[1], 0, call.padded * BYTES);
  }

  void add_inputs(const Number *const *pre) const {
    int64_t c = call.shape.channels, whole = Scratch::whole(c);
    memset(s.inputs, 0, cells.count * whole * BYTES);
    Segment only = {pre, call.width()};
    const Number *by = weights + call.forward_weights() + state_weights(call);
    add_products(&only, 1, cells.count, by, whole, s.inputs, whole);
    Number *dx = call.t.dx + d * call.shape.batch * call.shape.rows * call.shape.cols * c;
    for (int64_t i = 0; i < cells.count; i++)
      memcpy(dx + call.seen(d, cells.b[i], cells.row[i], cells.col[i]) * c, s.inputs + i * whole, c * BYTES);
  }

  void operator()(int64_t step) const {
    const GridTensors &t = call.t;
    int64_t count = cells.count, c = call.shape.channels, size = call.size, width = call.width();
    add_states(step);
    if (call.shape.cell != RNN && !t.gates) add_sums(call, d, cells, weights, s.gates);
    const Number *hidden[GRID_CHUNK], *pre[GRID_CHUNK];
    for (int64_t i = 0; i < count; i++) {
      Place p = place(step, i);
      if (p.col) fetch_cell(p.b, p.row, p.col - 1);
      if (call.shape.cell != RNN) {
        if (t.gates)
          find_gates(i);
        else
          open_gates(call.shape.cell, s.gates + i * 5 * call.padded, call.padded);
      }
      end_cell(p);
      hidden[i] = p.hidden, pre[i] = p.pre;
    }
    if (t.d_into) add_outer(cells.x, c, pre, count, partial, width);
    if (t.d_left) add_outer(cells.left, size, hidden, count, partial + c * width, width);
    if (t.d_top) add_outer(cells.top, size, hidden, count, partial + (c + size) * width, width);
    if (t.d_bias) {
      Number *to = partial + (c + 2 * size) * width;
      for (int64_t i = 0; i < count; i++)
        for (int64_t v = 0; v < width; v += GRID_LANES) store(to + v, load(to + v) + load(pre[i] + v));
    }
    if (t.dx) add_inputs(pre);
    for (int64_t i = 0; i < count; i++) {
      if (!cells.col[i]) end_edge(call, place(step, i), 0, weights + call.forward_weights(), s);
      if (!cells.row[i]) end_edge(call, place(step, i), 1, weights + call.forward_weights(), s);
    }
  }
};

void run_backward(const GridCall &call, Number *memory, int64_t d, int64_t task) {
  const GridShape &shape = call.shape;
  Scratch s;
  s.lay(call, memory);
  memset(s.nothing, 0, call.width() * BYTES);
  int64_t begin = task * shape.of_task, stop = begin + shape.of_task;
  if (stop > shape.batch) stop = shape.batch;
  int64_t each = (call.inputs() + 1) * call.width();
  Number *partial = call.t.partial + (d * call.tasks() + task) * each;
  memset(partial, 0, each * BYTES);
  Cells cells;
  for (int64_t first = begin; first < stop; first += shape.together) {
    int64_t end = first + shape.together < stop ? first + shape.together : stop;
    Backward work = {call, s, d, first, cells, call.packed + d * all_weights(call), partial};
    walk(call, d, first, end, true, cells, work);
  }
}

// Writes the sum of all tasks' gradients of some inputs, [size of all gates][count].
void end_weights(const GridCall &call, int64_t d, int64_t from, int64_t count, Number *to) {
  if (!to) return;
  int64_t width = call.width(), each = (call.inputs() + 1) * width, tasks = call.tasks();
  int64_t numbers = call.gates * call.size * count;
  if (!tasks) {
    memset(to + d * numbers, 0, numbers * BYTES);
    return;
  }
  Number *sums = call.t.partial + d * tasks * each;
  for (int64_t task = 1; task < tasks; task++)
    for (int64_t i = from * width; i < (from + count) * width; i += GRID_LANES)
      store(sums + i, load(sums + i) + load(sums + task * each + i));
  for (int64_t gate = 0; gate < call.gates; gate++)
    for (int64_t j = 0; j < call.size; j++)
      for (int64_t k = 0; k < count; k++)
        to[((d * call.gates + gate) * call.size + j) * count + k] = sums[(from + k) * width + gate * call.padded + j];
}

}  // namespace

// Gives 0, or 1 where there is too little memory.
extern "C" int64_t GRID_NAME(lattend_grid_backward)(const GridShape *shape, const GridTensors *tensors,
                                                     int64_t threads) {
  GridCall call(*shape, *tensors);
  call.packed = allocated(shape->directions * all_weights(call));
  if (!call.packed) return 1;
  for (int64_t d = 0; d < shape->directions; d++) pack_all(call, d, call.packed + d * all_weights(call));
  Scratch s;
  GridTasks tasks = {call, run_backward, s.lay(call, nullptr), 0, 0};
  if (run_grid(tasks, threads)) return 1;
  int64_t c = shape->channels, size = shape->size;
  for (int64_t d = 0; d < shape->directions; d++) {
    end_weights(call, d, 0, c, tensors->d_into);
    end_weights(call, d, c, size, tensors->d_left);
    end_weights(call, d, c + size, size, tensors->d_top);
    end_weights(call, d, c + 2 * size, 1, tensors->d_bias);
  }
  return 0;
}
