/* A blocked matrix product: C = A B, with block sizes and a loop order chosen at compile time.
   Prints the time of the product in ms, and writes C to the file that it is given. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifndef N
#define N 512
#endif
#if N % BLOCK_I || N % BLOCK_K
#error "the blocks have to divide the matrix"
#endif

static float a[N][N], b[N][N], c[N][N];

static void block(int i0, int k0)
{
    for (int i = i0; i < i0 + BLOCK_I; i++)
#if ORDER == 1 /* i, k, j: along the rows of B and C */
        for (int k = k0; k < k0 + BLOCK_K; k++)
            for (int j = 0; j < N; j++)
                c[i][j] += a[i][k] * b[k][j];
#else /* i, j, k: down the columns of B */
        for (int j = 0; j < N; j++)
            for (int k = k0; k < k0 + BLOCK_K; k++)
                c[i][j] += a[i][k] * b[k][j];
#endif
}

int main(int n_arguments, char **arguments)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = (float)((i * 7 + j) % 11) / 11;
            b[i][j] = (float)((i + j * 5) % 13) / 13;
        }
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int k = 0; k < N; k += BLOCK_K)
        for (int i = 0; i < N; i += BLOCK_I)
            block(i, k);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("product: %.4f ms\n",
           (double)(end.tv_sec - begin.tv_sec) * 1e3 + (double)(end.tv_nsec - begin.tv_nsec) / 1e6);
    FILE *file = n_arguments > 1 ? fopen(arguments[1], "wb") : NULL;
    return file == NULL || fwrite(c, sizeof c, 1, file) != 1 || fclose(file);
}
