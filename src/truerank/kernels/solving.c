/* Least squares: for each row of a sparse matrix, sum up the equations and solve them by Cholesky's method. */

#define NUMBER_BITS 64
#include <math.h>
#include <stdlib.h>

#include "kernels.h"
#include "products.h"
#include "rows.h"
#include "squares.h"

/* The memory needed to solve for one row. */
typedef struct {
    int64_t width;
    float *strips, *products;   /* PART rows of factors in strips; sums of their outer products */
    double *matrix, *negative;  /* the equations, then their root; COLUMNS rows of it, negated */
} Room;

/* Copy a row of factors to position `k` of the strips, and add it to `total`. */
static void take(const float *row, int64_t k, const Room *room, double *total) {
    for (int64_t column = 0; column < room->width; column += STRIP) {
        memcpy(room->strips + column * PART + k * STRIP, row + column, STRIP * sizeof *row);
        for (int64_t j = column; j < column + STRIP; j++)
            total[j] += row[j];
    }
}

/* Divide row i of the equations by the root of its diagonal, and eliminate it from the right-hand side. */
static void finish_row(double *matrix, double *vector, double *minus, int64_t i, int64_t width) {
    double scale = 1 / sqrt(matrix[i * width + i]), solved = vector[i] * scale;
    for (int64_t j = i; j < width; j++) {
        matrix[i * width + j] *= scale;
        minus[j] = -matrix[i * width + j];
    }
    for (int64_t j = i; j < width; j++)
        vector[j] += minus[j] * solved;
    vector[i] = solved;
}

/* Overwrite the upper triangle of a positive definite matrix with its root, and `vector` with R'^-1 vector.

   COLUMNS rows of the root are found one by one; the rows below are then updated with all of them. */
static void eliminate(const Room *room, double *vector) {
    int64_t width = room->width;
    double *matrix = room->matrix;
    for (int64_t start = 0; start < width; start += COLUMNS) {
        int64_t stop = start + COLUMNS;
        for (int64_t i = start; i < stop; i++) {
            double *minus = room->negative + (i - start) * width;
            finish_row(matrix, vector, minus, i, width);
            for (int64_t k = i + 1; k < stop; k++)
                for (int64_t j = start; j < width; j += LANES) {
                    double *below = matrix + k * width + j;
                    store(below, fused(splat(minus[k]), load(matrix + i * width + j), load(below)));
                }
        }
        add_upper(room->negative, matrix + start * width, COLUMNS, stop, matrix, width);
    }
}

/* Overwrite `vector` with R^-1 vector; each sum is split into four independent ones. */
static void substitute(const double *matrix, double *vector, int64_t width) {
    for (int64_t i = width - 1; i >= 0; i--) {
        const double *row = matrix + i * width;
        int64_t first = i / 4 * 4 + 4;
        double sums[4] = {0};
        for (int64_t j = i + 1; j < first; j++)
            sums[0] += row[j] * vector[j];
        for (int64_t j = first; j < width; j += 4)
            for (int part = 0; part < 4; part++)
                sums[part] += row[j + part] * vector[j + part];
        vector[i] = (vector[i] - ((sums[0] + sums[1]) + (sums[2] + sums[3]))) / row[i];
    }
}

static void solve_row(
    const Room *room, const int32_t *columns, int64_t size, const float *factors, const double *shared_gram,
    double penalty, double *vector) {
    int64_t width = room->width;
    memcpy(room->matrix, shared_gram, width * width * sizeof(double));
    memset(vector, 0, width * sizeof(double));
    for (int64_t first = 0; first < size; first += PART) {
        int64_t depth = least(PART, size - first);
        for (int64_t k = 0; k < depth; k++)
            take(factors + columns[first + k] * width, k, room, vector);
        add_squares(room->strips, depth, room->products, width);
        move_upper(room->products, room->matrix, width);
    }
    for (int64_t i = 0; i < width; i++)
        room->matrix[i * width + i] += penalty;
    eliminate(room, vector);
    substitute(room->matrix, vector, width);
}

int64_t solve_rows(
    const Rows *rows, int64_t start, int64_t stop, const Matrix *factors, const double *shared_gram,
    const double *penalties, double *solutions) {
    int64_t width = factors->columns, square = width * width;
    if (width % STRIP || !lies_within(rows, start, stop, factors->rows))
        return INVALID;
    double *memory = malloc((square + COLUMNS * width) * sizeof(double) + (square + PART * width) * sizeof(float));
    if (!memory)
        return NO_MEMORY;
    Room room = {.width = width, .matrix = memory, .negative = memory + square};
    room.products = (float *)(room.negative + COLUMNS * width);
    room.strips = room.products + square;
    memset(room.products, 0, square * sizeof(float));
    memset(room.negative, 0, COLUMNS * width * sizeof(double));
    for (int64_t row = start; row < stop; row++) {
        int64_t first = rows->begin[row], size = rows->begin[row + 1] - first;
        solve_row(
            &room, rows->columns + first, size, factors->numbers, shared_gram, penalties[row], solutions + row * width);
    }
    free(memory);
    return DONE;
}
