/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A clock that counts instructions, kernel and all: only in a machine whose time is made of them
 * (boot.sh --icount).
 */
#ifndef TESTS_VM_INSN_H
#define TESTS_VM_INSN_H

#include <stdint.h>
#include <stdlib.h>

#ifdef __x86_64__
static inline uint64_t insn_now(void)
{
	return __builtin_ia32_rdtsc();
}

/* How many instructions one more of insn_now() is. */
static inline double insn_per_tick(void)
{
	return 1;
}
#elif defined(__aarch64__)
static inline uint64_t insn_now(void)
{
	uint64_t t;

	asm volatile("isb; mrs %0, cntvct_el0" : "=r"(t)::"memory");
	return t;
}

static inline double insn_per_tick(void)
{
	uint64_t hz;

	asm("mrs %0, cntfrq_el0" : "=r"(hz));
	return 1e9 / (double)hz;
}
#endif

static inline int insn_by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The median of @n values; they are in order then. */
static inline double insn_median(double *v, size_t n)
{
	qsort(v, n, sizeof(v[0]), insn_by_value);
	return v[n / 2];
}

#endif
