// Terms and conditions of positions, evaluated for some keys at a time: programs for a stack of columns.

#pragma once

#include "vectors.h"

namespace {

constexpr int64_t BLOCK = 32;    // keys of a column
constexpr int64_t DEPTH = 16;    // columns of the stack
constexpr int64_t TABLES = 6;    // tensors that a program reads
constexpr int64_t MOST_AXES = 4;  // of each

// These are those of decode/program.py and decode/native_step.py.

enum Code : int64_t {
  NUMBER, QUERY, KEY, HEAD, ELEMENT,                        // put a column on the stack
  LOOK_UP,                                                  // takes the columns of a table's indices
  TO_REAL, LOWER_TO_REAL,                                   // the last column, or that before it
  ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER, LEAST, MOST,  // of whole numbers
  NEGATIVE, SIZE,
  LESS, AT_MOST, GREATER, AT_LEAST, EQUAL, UNEQUAL,
  BOTH, EITHER, NOT,
  REAL_ADD, REAL_SUBTRACT, REAL_MULTIPLY, REAL_NEGATIVE
};

struct Instruction {
  int64_t code, number;
};

struct Program {
  const Instruction *instructions;
  int64_t count;
};

enum TableDtype : int64_t { TABLE_FLOAT64 = 3, TABLE_INT64 = 4 };  // after those of vectors.h

struct Table {
  int64_t dtype, axes, sizes[MOST_AXES], strides[MOST_AXES];
};

union Column {
  int64_t whole[BLOCK];
  uint64_t bits[BLOCK];  // of whole numbers, whose sums wrap around
  double real[BLOCK];
};

// Where a program runs: one query of a head, and the keys of a column.
struct Places {
  int64_t element, head, query, count;
  const int64_t *keys;
  const Table *tables;
  const void *const *tensors;
};

inline void look_up(const Table &table, const void *from, Column *stack, int64_t count) {
  int64_t at[BLOCK] = {};
  for (int64_t axis = 0; axis < table.axes; axis++) {
    int64_t last = table.sizes[axis] - 1, stride = table.strides[axis];
    const int64_t *index = stack[axis].whole;
    for (int64_t j = 0; j < count; j++) {
      int64_t inside = index[j] < 0 ? 0 : index[j] > last ? last : index[j];
      at[j] += inside * stride;
    }
  }
  if (table.dtype == TABLE_INT64) {
    for (int64_t j = 0; j < count; j++) stack->whole[j] = static_cast<const int64_t *>(from)[at[j]];
  } else if (table.dtype == TABLE_FLOAT64) {
    for (int64_t j = 0; j < count; j++) stack->real[j] = float(static_cast<const double *>(from)[at[j]]);
  } else if (table.dtype == FLOAT32) {
    for (int64_t j = 0; j < count; j++) stack->real[j] = static_cast<const float *>(from)[at[j]];
  } else {
    const uint16_t *half = static_cast<const uint16_t *>(from);
    bool brain = table.dtype == BFLOAT16;
    for (int64_t j = 0; j < count; j++)
      stack->real[j] = brain ? float_of(uint32_t(half[at[j]]) << 16) : from_float16(half[at[j]]);
  }
}

// The quotient rounded down; no divisor is 0.
inline int64_t floor_divide(int64_t a, int64_t b) {
  int64_t found = a / b;
  return found - (found * b != a && (a < 0) != (b < 0));
}

#define EACH(column, value) \
  for (int64_t j = 0; j < at.count; j++) (column)[j] = (value)

// What the program gives for each key lies in the first column of the stack.
inline void evaluate(const Program &program, const Places &at, Column *stack) {
  Column *end = stack;
  for (int64_t i = 0; i < program.count; i++) {
    int64_t number = program.instructions[i].number;
    Column *a = end - 2, *b = end - 1;
    switch (program.instructions[i].code) {
      case NUMBER: EACH(end->whole, number); end++; break;
      case QUERY: EACH(end->whole, at.query); end++; break;
      case KEY: EACH(end->whole, at.keys[j]); end++; break;
      case HEAD: EACH(end->whole, at.head); end++; break;
      case ELEMENT: EACH(end->whole, at.element); end++; break;
      case LOOK_UP:
        end -= at.tables[number].axes;
        look_up(at.tables[number], at.tensors[number], end, at.count);
        end++;
        break;
      case TO_REAL: EACH(b->real, double(b->whole[j])); break;
      case LOWER_TO_REAL: EACH(a->real, double(a->whole[j])); break;
      case ADD: EACH(a->bits, a->bits[j] + b->bits[j]); end--; break;
      case SUBTRACT: EACH(a->bits, a->bits[j] - b->bits[j]); end--; break;
      case MULTIPLY: EACH(a->bits, a->bits[j] * b->bits[j]); end--; break;
      case DIVIDE: EACH(a->whole, floor_divide(a->whole[j], b->whole[j])); end--; break;
      case REMAINDER: EACH(a->whole, a->whole[j] - floor_divide(a->whole[j], b->whole[j]) * b->whole[j]); end--; break;
      case LEAST: EACH(a->whole, a->whole[j] < b->whole[j] ? a->whole[j] : b->whole[j]); end--; break;
      case MOST: EACH(a->whole, a->whole[j] > b->whole[j] ? a->whole[j] : b->whole[j]); end--; break;
      case NEGATIVE: EACH(b->bits, 0 - b->bits[j]); break;
      case SIZE: EACH(b->bits, b->whole[j] < 0 ? 0 - b->bits[j] : b->bits[j]); break;
      case LESS: EACH(a->whole, a->whole[j] < b->whole[j]); end--; break;
      case AT_MOST: EACH(a->whole, a->whole[j] <= b->whole[j]); end--; break;
      case GREATER: EACH(a->whole, a->whole[j] > b->whole[j]); end--; break;
      case AT_LEAST: EACH(a->whole, a->whole[j] >= b->whole[j]); end--; break;
      case EQUAL: EACH(a->whole, a->whole[j] == b->whole[j]); end--; break;
      case UNEQUAL: EACH(a->whole, a->whole[j] != b->whole[j]); end--; break;
      case BOTH: EACH(a->whole, a->whole[j] & b->whole[j]); end--; break;
      case EITHER: EACH(a->whole, a->whole[j] | b->whole[j]); end--; break;
      case NOT: EACH(b->whole, !b->whole[j]); break;
      case REAL_ADD: EACH(a->real, a->real[j] + b->real[j]); end--; break;
      case REAL_SUBTRACT: EACH(a->real, a->real[j] - b->real[j]); end--; break;
      case REAL_MULTIPLY: EACH(a->real, a->real[j] * b->real[j]); end--; break;
      case REAL_NEGATIVE: EACH(b->real, -b->real[j]); break;
    }
  }
}

#undef EACH

}  // namespace
