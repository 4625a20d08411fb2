/* Attention in float32 for a wave of dialogues: to the prefix that they share, and of each to its
 * own tokens.
 *
 * A wave asks a few queries of a few hundred keys, for every dialogue and head, in every layer.
 * Kernels made for large matrices spend most of that time on packing and padding. Here each
 * dialogue is read at its own length, with its own number of queries.
 *
 * compiled.py compiles it with -DSIZE=<head size>, a multiple of 16. The vector types are GCC's,
 * which turns them into whatever instructions the processor has.
 */
#if defined(__clang__) || !defined(__GNUC__)
#error "PyTorch brings GCC's OpenMP; another one in the same process may stop it"
#endif
#if !defined(__AVX512F__) && !defined(ANY_PROCESSOR)
#error "with fewer or shorter registers the sums leave them: no faster than PyTorch's kernels"
#endif
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#define LANES 16
#define PARTS (SIZE / LANES)
/* Queries that are worked on together: as many as leave their sums in registers. */
#define ROWS 6
/* Tokens whose queries one thread takes to the prefix at once. */
#define PORTION 16

typedef float vector __attribute__((vector_size(4 * LANES), aligned(4)));
typedef int32_t whole __attribute__((vector_size(4 * LANES)));

/* Some tokens of a dialogue. */
struct work {
    int64_t slot;   /* the dialogue's slot */
    int64_t start;  /* place of the first of these tokens in it */
    int64_t tokens; /* how many */
    int64_t first;  /* index of the first in the packed row */
};

/* Numbers for each head of keys, each query head that shares it, and each token: how far it is
 * from one to the next. */
struct strided {
    float *data; /* NULL if there are none */
    int64_t head, sharer, token;
};

/* Queries that are worked on together. */
struct tile {
    int rows;
    const float *query[ROWS];
    float *out[ROWS], *lse[ROWS];
    int64_t begin[ROWS], end[ROWS]; /* the keys that each sees */
    const float *other[ROWS], *other_lse[ROWS]; /* what is to be joined, or NULL */
};

static inline float *at(const struct strided *s, int64_t head, int64_t sharer, int64_t token)
{
    return s->data + head * s->head + sharer * s->sharer + token * s->token;
}

static inline vector all(float x) { return x - (vector){0}; }

static inline vector pick(whole where, vector yes, vector no)
{
    return (vector)(((whole)yes & where) | ((whole)no & ~where));
}

/* e^x for x <= 0, to two units in the last place; e^-87, which is next to nothing, for what is
 * less. 2^n comes from the bits of the exponent; the rest, within half of ln 2, from a polynomial
 * whose coefficients are those of Moshier's Cephes library. */
static inline vector power(vector x)
{
    const vector magic = all(12582912.0f); /* adding it rounds to whole numbers */
    x = pick(x < -87.0f, all(-87.0f), x);
    vector n = x * 1.44269504088896341f + magic;
    whole two = (whole)n << 23;
    n -= magic;
    vector r = x - n * 0.693359375f + n * 2.12194440e-4f;
    vector p = all(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return (vector)((whole)p + two);
}

/* Sixteen vectors of sixteen numbers, rows to columns: halves change places, then quarters. */
#define SWAP(step, low, high)                                        \
    for (int i = 0; i < LANES; i++)                                  \
        if (!(i & step)) {                                           \
            vector a = m[i], b = m[i + step];                        \
            m[i] = __builtin_shuffle(a, b, (whole){low});            \
            m[i + step] = __builtin_shuffle(a, b, (whole){high});    \
        }
static inline void transpose(vector m[LANES])
{
#define L8 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#define H8 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31
#define L4 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27
#define H4 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31
#define L2 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define H2 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define L1 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30
#define H1 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31
#pragma GCC unroll 16
    SWAP(8, L8, H8)
#pragma GCC unroll 16
    SWAP(4, L4, H4)
#pragma GCC unroll 16
    SWAP(2, L2, H2)
#pragma GCC unroll 16
    SWAP(1, L1, H1)
}

static inline int64_t blocks_of(int64_t keys) { return (keys + LANES - 1) / LANES; }

/* Keys sixteen at a time, their numbers of one place side by side; zeros after the last. */
static void turn(const float *keys, int64_t count, vector *turned)
{
    for (int64_t j = 0; j < count; j += LANES, turned += SIZE)
        for (int part = 0; part < PARTS; part++) {
            vector m[LANES];
#pragma GCC unroll 16
            for (int i = 0; i < LANES; i++)
                m[i] = j + i < count ? *(const vector *)(keys + (j + i) * SIZE + part * LANES)
                                     : all(0);
            transpose(m);
#pragma GCC unroll 16
            for (int i = 0; i < LANES; i++)
                turned[part * LANES + i] = m[i];
        }
}

/* Scores of a tile, two blocks of keys at a time. */
__attribute__((always_inline)) static inline void
score(int rows, const struct tile *t, const vector *turned, int64_t blocks, float scale,
      vector *scores, int64_t wide)
{
    int64_t b = 0;
    for (; b + 2 <= blocks; b += 2) {
        vector s[ROWS][2] = {0};
        const vector *k = turned + b * SIZE;
        for (int d = 0; d < SIZE; d++) {
            vector k0 = k[d], k1 = k[SIZE + d];
#pragma GCC unroll 6
            for (int r = 0; r < rows; r++) {
                vector q = all(t->query[r][d]);
                s[r][0] += q * k0;
                s[r][1] += q * k1;
            }
        }
#pragma GCC unroll 6
        for (int r = 0; r < rows; r++) {
            scores[r * wide + b] = s[r][0] * scale;
            scores[r * wide + b + 1] = s[r][1] * scale;
        }
    }
    for (; b < blocks; b++)
        for (int r = 0; r < rows; r++) {
            vector s = all(0);
            for (int d = 0; d < SIZE; d++)
                s += t->query[r][d] * turned[b * SIZE + d];
            scores[r * wide + b] = s * scale;
        }
}

/* Turns a row of scores into weights, and gives their sum and the greatest score. */
static inline void soften(vector *scores, int64_t blocks, int64_t begin, int64_t end, float *most,
                          float *total)
{
    float *one = (float *)scores;
    for (int64_t j = 0; j < begin; j++)
        one[j] = -INFINITY;
    for (int64_t j = end; j < blocks * LANES; j++)
        one[j] = -INFINITY;
    vector top = scores[0], sum = all(0);
    for (int64_t b = 1; b < blocks; b++)
        top = pick(scores[b] > top, scores[b], top);
    *most = top[0];
    for (int i = 1; i < LANES; i++)
        *most = top[i] > *most ? top[i] : *most;
    for (int64_t b = 0; b < blocks; b++) {
        scores[b] = power(scores[b] - *most);
        sum += scores[b];
    }
    *total = 0;
    for (int i = 0; i < LANES; i++)
        *total += sum[i];
}

/* Values times their weights, added up; then what is to be joined. */
__attribute__((always_inline)) static inline void
weigh(int rows, const struct tile *t, const vector *weights, int64_t wide, const float *values,
      int64_t keys, const float *share, const float *rest)
{
    for (int part = 0; part < PARTS; part += 4) {
        vector sum[ROWS][4] = {0};
        const float *v = values + part * LANES;
        int here = PARTS - part < 4 ? PARTS - part : 4;
        if (here == 4)
            for (int64_t j = 0; j < keys; j++, v += SIZE) {
                vector v0 = *(const vector *)v, v1 = *(const vector *)(v + LANES);
                vector v2 = *(const vector *)(v + 2 * LANES), v3 = *(const vector *)(v + 3 * LANES);
#pragma GCC unroll 6
                for (int r = 0; r < rows; r++) {
                    vector p = all(((const float *)(weights + r * wide))[j]);
                    sum[r][0] += p * v0;
                    sum[r][1] += p * v1;
                    sum[r][2] += p * v2;
                    sum[r][3] += p * v3;
                }
            }
        else
            for (int64_t j = 0; j < keys; j++, v += SIZE)
                for (int r = 0; r < rows; r++)
                    for (int i = 0; i < here; i++)
                        sum[r][i] += ((const float *)(weights + r * wide))[j]
                                     * *(const vector *)(v + i * LANES);
        for (int r = 0; r < rows; r++)
            for (int i = 0; i < here; i++) {
                int64_t d = (part + i) * LANES;
                vector joined = sum[r][i] * share[r];
                if (t->other[r] != NULL)
                    joined += *(const vector *)(t->other[r] + d) * rest[r];
                *(vector *)(t->out[r] + d) = joined;
            }
    }
}

#define CASES(call)                                                  \
    switch (t->rows) {                                               \
    case 1: { enum { n = 1 }; call; break; }                         \
    case 2: { enum { n = 2 }; call; break; }                         \
    case 3: { enum { n = 3 }; call; break; }                         \
    case 4: { enum { n = 4 }; call; break; }                         \
    case 5: { enum { n = 5 }; call; break; }                         \
    default: { enum { n = ROWS }; call; break; }                     \
    }

/* The queries from `row` on, of so many, counted token by token; what they see is left open. */
static inline struct tile tile_at(const struct strided *query, const struct strided *out,
                                  const struct strided *lse, int64_t head, int64_t sharers,
                                  int64_t row, int64_t rows)
{
    struct tile t = {.rows = rows - row < ROWS ? (int)(rows - row) : ROWS};
    for (int r = 0; r < t.rows; r++) {
        int64_t token = (row + r) / sharers, sharer = (row + r) % sharers;
        t.query[r] = at(query, head, sharer, token);
        t.out[r] = at(out, head, sharer, token);
        t.lse[r] = at(lse, head, sharer, token);
    }
    return t;
}

/* Attention of a tile to keys and their values, and the joining. */
static void attend(const struct tile *t, const vector *turned, const float *values, float scale,
                   vector *scores)
{
    int64_t end = 0;
    float share[ROWS], rest[ROWS];
    for (int r = 0; r < t->rows; r++)
        end = t->end[r] > end ? t->end[r] : end;
    int64_t blocks = blocks_of(end);
    CASES(score(n, t, turned, blocks, scale, scores, blocks))
    for (int r = 0; r < t->rows; r++) {
        float most, total;
        soften(scores + r * blocks, blocks, t->begin[r], t->end[r], &most, &total);
        float own = most + logf(total), both = own;
        if (t->other[r] != NULL) {
            float top = own > *t->other_lse[r] ? own : *t->other_lse[r];
            both = top + logf(expf(own - top) + expf(*t->other_lse[r] - top));
            rest[r] = expf(*t->other_lse[r] - both);
        }
        share[r] = expf(own - both) / total;
        *t->lse[r] = both;
    }
    CASES(weigh(n, t, scores, blocks, values, end, share, rest))
}

/* Turns the keys of the prefix. keys: shape (few, keys, SIZE). turned: shape (few, blocks, SIZE,
 * 16). */
void turn_prefix(const float *keys, int64_t few, int64_t count, float *turned)
{
    for (int64_t head = 0; head < few; head++)
        turn(keys + head * count * SIZE, count,
             (vector *)turned + head * blocks_of(count) * SIZE);
}

/* All queries ask the prefix, which all of them see whole. Returns 0, or 1 if memory ran out.
 *
 * turned  what turn_prefix made
 * values  shape (few, count, SIZE)
 * few     heads of keys, each shared by so many query heads
 */
int prefix_attention(const struct strided *query, const float *turned, const float *values,
                     int64_t count, const struct strided *out, const struct strided *lse,
                     int64_t tokens, int64_t few, int64_t sharers, float scale, int threads)
{
    int64_t portions = (tokens + PORTION - 1) / PORTION, wide = blocks_of(count);
    int failed = 0;
#pragma omp parallel num_threads(threads) reduction(| : failed)
    {
        vector *scores = aligned_alloc(sizeof(vector), (size_t)(wide * ROWS) * sizeof(vector));
        failed = scores == NULL;
        /* One head after the other: its keys and values stay in the cache. */
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < portions * few; i++) {
            int64_t head = i / portions, first = i % portions * PORTION;
            int64_t last = first + PORTION < tokens ? first + PORTION : tokens;
            for (int64_t row = first * sharers; row < last * sharers && !failed; row += ROWS) {
                struct tile t = tile_at(query, out, lse, head, sharers, row, last * sharers);
                for (int r = 0; r < t.rows; r++)
                    t.end[r] = count;
                attend(&t, (const vector *)turned + head * wide * SIZE,
                       values + head * count * SIZE, scale, scores);
            }
        }
        free(scores);
    }
    return failed;
}

/* Each dialogue's queries ask its own tokens. Returns 0, or 1 if memory ran out.
 *
 * keys      shape (slots, few, capacity, SIZE), like the values
 * work      what there is to do, the most expensive first
 * window    how many tokens one sees at most, itself included; 0 for all
 * prefix    what the queries found in the prefix, to be joined by the log-sum-exp of both sides
 */
int own_attention(const struct strided *query, const float *keys, const float *values,
                  int64_t capacity, const struct strided *out, const struct strided *lse,
                  const struct work *work, int64_t portions, int64_t few, int64_t sharers,
                  int64_t window, float scale, const struct strided *prefix,
                  const struct strided *prefix_lse, int threads)
{
    int64_t longest = 0;
    int failed = 0;
    for (int64_t i = 0; i < portions; i++) {
        int64_t end = work[i].start + work[i].tokens;
        longest = end > longest ? end : longest;
    }
    size_t needed = (size_t)blocks_of(longest) * (SIZE + ROWS) * sizeof(vector);
#pragma omp parallel num_threads(threads) reduction(| : failed)
    {
        vector *room = aligned_alloc(sizeof(vector), needed);
        failed = room == NULL;
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < portions * few; i++) {
            struct work w = work[i / few];
            int64_t head = i % few, end = w.start + w.tokens, least = 0;
            if (window > 0 && w.start + 1 > window)
                least = w.start + 1 - window;
            int64_t here = ((w.slot * few + head) * capacity + least) * SIZE;
            vector *scores = room + blocks_of(end - least) * SIZE;
            if (!failed)
                turn(keys + here, end - least, room);
            int64_t rows = (w.first + w.tokens) * sharers;
            for (int64_t row = w.first * sharers; row < rows && !failed; row += ROWS) {
                struct tile t = tile_at(query, out, lse, head, sharers, row, rows);
                for (int r = 0; r < t.rows; r++) {
                    int64_t token = (row + r) / sharers, sharer = (row + r) % sharers;
                    t.end[r] = w.start + token - w.first + 1 - least;
                    t.begin[r] = window > 0 && t.end[r] > window ? t.end[r] - window : 0;
                    if (prefix->data != NULL) {
                        t.other[r] = at(prefix, head, sharer, token);
                        t.other_lse[r] = at(prefix_lse, head, sharer, token);
                    }
                }
                attend(&t, room, values + here, scale, scores);
            }
        }
        free(room);
    }
    return failed;
}
