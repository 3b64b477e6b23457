/* Least squares by conjugate gradients: some steps from a known vector towards the solution of each row's equations.

   A step costs 2 x factors for each entry of the row, where exact equations cost half the square of the factors. Sums
   over factors are made of STRIP sums, one per place in a strip, which are then added in pairs: the same
   in every variant. */

#define NUMBER_BITS 32
#include <math.h>
#include <stdlib.h>

#include "kernels.h"
#include "rows.h"
#include "squares.h"
#include "vectors.h"

enum {
    TOGETHER = 4, /* rows of factors that are read at a time, so that other vectors are read less often */
    PER_STRIP = STRIP / LANES,
};

/* The equations of one row: (everywhere + sum_j f_j f_j' + penalty I) v = sum_j f_j. */
typedef struct {
    int64_t width, size;
    const int32_t *columns; /* j, `size` of them */
    const float *factors, *everywhere;
    float penalty;
    const float *zeros; /* a row to fill up with */
} Equations;

/* The vectors of the method: residual, direction, and direction times matrix. */
typedef struct {
    float *residual, *direction, *product;
} Vectors;

INLINE float add_lanes(const float *sums) {
    float rest[STRIP];
    memcpy(rest, sums, sizeof rest);
    for (int half = STRIP / 2; half > 0; half /= 2)
        for (int lane = 0; lane < half; lane++)
            rest[lane] += rest[lane + half];
    return rest[0];
}

/* Find the inner products of TOGETHER rows with x. */
static void find_products(const float *const *rows, const float *x, int64_t width, float *products) {
    vector sums[TOGETHER][PER_STRIP] = {{{0}}};
    for (int64_t j = 0; j < width; j += STRIP)
        UNROLLED for (int part = 0; part < PER_STRIP; part++) {
            vector right = load(x + j + part * LANES);
            UNROLLED for (int row = 0; row < TOGETHER; row++)
                sums[row][part] = fused(load(rows[row] + j + part * LANES), right, sums[row][part]);
        }
    for (int row = 0; row < TOGETHER; row++)
        products[row] = add_lanes((const float *)sums[row]);
}

/* Add TOGETHER rows, each times its weight, to `out`. */
static void add_rows(const float *const *rows, const float *weights, int64_t width, float *out) {
    for (int64_t j = 0; j < width; j += LANES) {
        vector total = load(out + j);
        UNROLLED for (int row = 0; row < TOGETHER; row++)
            total = fused(splat(weights[row]), load(rows[row] + j), total);
        store(out + j, total);
    }
}

static float inner(const float *x, const float *y, int64_t width) {
    vector sums[PER_STRIP] = {{0}};
    for (int64_t j = 0; j < width; j += STRIP)
        UNROLLED for (int part = 0; part < PER_STRIP; part++)
            sums[part] = fused(load(x + j + part * LANES), load(y + j + part * LANES), sums[part]);
    return add_lanes((const float *)sums);
}

/* Add sum_j f_j (right - f_j x) to `out`. */
static void add_errors(const Equations *given, const float *x, float right, float *out) {
    for (int64_t first = 0; first < given->size; first += TOGETHER) {
        const float *rows[TOGETHER];
        float errors[TOGETHER];
        for (int k = 0; k < TOGETHER; k++)
            rows[k] = first + k < given->size ? given->factors + given->columns[first + k] * given->width : given->zeros;
        find_products(rows, x, given->width, errors);
        for (int k = 0; k < TOGETHER; k++)
            errors[k] = right - errors[k];
        add_rows(rows, errors, given->width, out);
    }
}

/* Write to `out` sum_j right f_j, less the matrix times x. */
static void find_residual(const Equations *given, const float *x, float right, float *out) {
    int64_t width = given->width;
    for (int64_t j = 0; j < width; j++)
        out[j] = -given->penalty * x[j];
    for (int64_t i = 0; i < width; i += TOGETHER) {
        const float *rows[TOGETHER];
        float weights[TOGETHER];
        for (int k = 0; k < TOGETHER; k++) {
            rows[k] = given->everywhere + (i + k) * width;
            weights[k] = -x[i + k];
        }
        add_rows(rows, weights, width, out);
    }
    add_errors(given, x, right, out);
}

/* Go `steps` steps from x. */
static void improve(const Equations *given, const Vectors *room, int64_t steps, float *x) {
    int64_t width = given->width;
    find_residual(given, x, 1, room->residual);
    memcpy(room->direction, room->residual, width * sizeof(float));
    float size = inner(room->residual, room->residual, width);
    for (int64_t step = 0; step < steps && size > 1e-20f; step++) {
        find_residual(given, room->direction, 0, room->product); /* with the other sign */
        float length = -size / inner(room->direction, room->product, width), before = size;
        for (int64_t j = 0; j < width; j++) {
            x[j] += length * room->direction[j];
            room->residual[j] += length * room->product[j];
        }
        size = inner(room->residual, room->residual, width);
        for (int64_t j = 0; j < width; j++)
            room->direction[j] = room->residual[j] + size / before * room->direction[j];
    }
}

int64_t improve_rows(
    const Rows *rows, int64_t start, int64_t stop, const Matrix *factors, const float *everywhere,
    const double *penalties, int64_t steps, float *solutions) {
    int64_t width = factors->columns;
    if (width % STRIP || !lies_within(rows, start, stop, factors->rows))
        return INVALID;
    float *memory = calloc(4 * width, sizeof *memory);
    if (!memory)
        return NO_MEMORY;
    Vectors room = {memory, memory + width, memory + 2 * width};
    for (int64_t row = start; row < stop; row++) {
        int64_t first = rows->begin[row];
        Equations given = {
            .width = width,
            .size = rows->begin[row + 1] - first,
            .columns = rows->columns + first,
            .factors = factors->numbers,
            .everywhere = everywhere,
            .penalty = (float)penalties[row],
            .zeros = memory + 3 * width,
        };
        if (given.size == 0)
            memset(solutions + row * width, 0, width * sizeof(float)); /* which solves the equations */
        else
            improve(&given, &room, steps, solutions + row * width);
    }
    free(memory);
    return DONE;
}
