// The recurrence over a grid, forward: all diagonals of a few images after each other, in one thread.

#include "grid.h"

namespace {

void fill_edge(const Number *edge, Number *to, int64_t by, int64_t count, int64_t size) {
  for (int64_t i = 0; i < count; i++) {
    if (edge)
      memcpy(to + i * by, edge + i * size, size * BYTES);
    else
      memset(to + i * by, 0, size * BYTES);
  }
}

void fill_edges(const GridCall &call, int64_t d, int64_t b, Number *states, const Number *const *edges) {
  int64_t rows = call.shape.rows, cols = call.shape.cols, size = call.size, image = call.image(d, b);
  const Number *left = edges[0] ? edges[0] + image * rows * size : nullptr;
  const Number *top = edges[1] ? edges[1] + image * cols * size : nullptr;
  memset(states + call.state(d, b, -1, -1), 0, size * BYTES);
  fill_edge(left, states + call.state(d, b, 0, -1), (cols + 1) * size, rows, size);
  fill_edge(top, states + call.state(d, b, -1, 0), size, cols, size);
}

// What a cell of the next diagonal will write.
void fetch_cell(const GridCall &call, int64_t d, int64_t b, int64_t row, int64_t col) {
  const GridTensors &t = call.t;
  int64_t size = call.size, at = call.state(d, b, row, col);
  if (t.gates) fetch<true>(t.gates + call.pixel(d, b, row, col) * 5 * size, 5 * size);
  if (t.c) fetch<true>(t.c + at, size);
  fetch<true>(t.h + at, size);
}

// The state of one cell from its sums.
void end_cell(const GridCall &call, int64_t d, int64_t b, int64_t row, int64_t col, Number *sums) {
  const GridTensors &t = call.t;
  int64_t size = call.size, padded = call.padded, cell = call.shape.cell, at = call.state(d, b, row, col);
  Number *h = t.h + at;
  if (col + 1 < call.shape.cols) fetch_cell(call, d, b, row, col + 1);
  if (cell != RNN) open_gates(cell, sums, padded);
  if (cell != RNN && t.gates) {
    Number *gates = t.gates + call.pixel(d, b, row, col) * 5 * size;
    for (int64_t gate = 0; gate < 5; gate++) memcpy(gates + gate * size, sums + gate * padded, size * BYTES);
  }
  if (!call.there(d, b, row, col)) {
    memset(h, 0, size * BYTES);
    if (cell == LSTM) memset(t.c + at, 0, size * BYTES);
    return;
  }
  const Number *states = cell == LSTM ? t.c : t.h;
  const Number *left = states + call.state(d, b, row, col - 1), *top = states + call.state(d, b, row - 1, col);
  for (int64_t v = 0; v < size; v += GRID_LANES) {
    int64_t count = size - v;
    if (cell == RNN) {
      store_part(h + v, activated(call.shape.activation, load(sums + v)), count);
      continue;
    }
    Numbers a = load(sums + v), kept = load(sums + padded + v), share = load(sums + 2 * padded + v);
    Numbers n = load(sums + 3 * padded + v), above = load_part(top + v, count);
    Numbers mixed = above + share * (load_part(left + v, count) - above);
    if (cell == LSTM) {
      Numbers c = kept * mixed + a * n;
      store_part(t.c + at + v, c, count);
      store_part(h + v, load(sums + 4 * padded + v) * tanh_of(c), count);
    } else {
      store_part(h + v, n + kept * (mixed - n), count);
    }
  }
}

void run_forward(const GridCall &call, Number *sums, int64_t d, int64_t task) {
  const GridShape &shape = call.shape;
  const Number *weights = call.packed + d * call.forward_weights();
  int64_t begin = task * shape.of_task, stop = begin + shape.of_task;
  if (stop > shape.batch) stop = shape.batch;
  Cells cells;
  for (int64_t first = begin; first < stop; first += shape.together) {
    int64_t end = first + shape.together < stop ? first + shape.together : stop;
    for (int64_t b = first; b < end; b++) {
      fill_edges(call, d, b, call.t.h, call.t.edges);
      if (shape.cell == LSTM) fill_edges(call, d, b, call.t.c, call.t.edges + 2);
    }
    walk(call, d, first, end, false, cells, [&](int64_t) {
      add_sums(call, d, cells, weights, sums);
      for (int64_t i = 0; i < cells.count; i++)
        end_cell(call, d, cells.b[i], cells.row[i], cells.col[i], sums + i * call.groups * call.padded);
    });
  }
}

}  // namespace

// Gives 0, or 1 where there is too little memory.
extern "C" int64_t GRID_NAME(lattend_grid_forward)(const GridShape *shape, const GridTensors *tensors,
                                                    int64_t threads) {
  GridCall call(*shape, *tensors);
  call.packed = allocated(shape->directions * call.forward_weights());
  if (!call.packed) return 1;
  for (int64_t d = 0; d < shape->directions; d++) call.pack_forward(d, call.packed + d * call.forward_weights());
  GridTasks tasks = {call, run_forward, GRID_CHUNK * call.groups * call.padded, 0, 0};
  return run_grid(tasks, threads);
}
