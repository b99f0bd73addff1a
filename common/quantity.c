// SPDX-License-Identifier: Apache-2.0
/*
 * Kubernetes quantities, in decimal arithmetic on the digits as they stand: "0.1Ei" and
 * "123456789012345678901n" are as exact as "2".
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/identity.h"
#include "common/quantity.h"

/* The API server writes a quantity with 19 digits; nobody needs more than this. */
#define DIGITS_MAX 128
/* Seven times 1024 adds at most this many digits. */
#define DIGITS_ROOM (DIGITS_MAX + 32)
/* Beyond any number that fits, so that sums with it can't overflow. */
#define EXPONENT_MAX 100000

/* d[0] + 10 d[1] + 100 d[2] + ..., times 10^exponent. */
struct decimal {
	unsigned char d[DIGITS_ROOM];
	size_t n;
	long exponent;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Reads "<digits>[.[<digits>]]" or ".<digits>" at *@s; false where there is none. */
static bool read_number(const char **s, struct decimal *ret)
{
	const char *p = *s;
	bool fraction = false;

	*ret = (struct decimal){ 0 };
	for (; is_digit(*p) || (*p == '.' && !fraction); p++) {
		if (*p == '.') {
			fraction = true;
			continue;
		}
		if (ret->n == DIGITS_MAX)
			return false;
		ret->d[ret->n++] = (unsigned char)(*p - '0');
		ret->exponent -= fraction;
	}
	*s = p;
	for (size_t i = 0; i < ret->n / 2; i++) {
		unsigned char c = ret->d[i];

		ret->d[i] = ret->d[ret->n - 1 - i];
		ret->d[ret->n - 1 - i] = c;
	}
	return ret->n > 0;
}

static void times_1024(struct decimal *x)
{
	unsigned int carry = 0;

	for (size_t i = 0; i < x->n; i++) {
		carry += x->d[i] * 1024u;
		x->d[i] = (unsigned char)(carry % 10);
		carry /= 10;
	}
	for (; carry && x->n < sizeof(x->d); carry /= 10)
		x->d[x->n++] = (unsigned char)(carry % 10);
}

/* "e<sign><digits>" at @s, to the end. */
static bool read_exponent(const char *s, long *ret)
{
	bool negative = *++s == '-';
	long e = 0;

	if (*s == '-' || *s == '+')
		s++;
	if (!is_digit(*s))
		return false;
	for (; is_digit(*s); s++)
		e = e < EXPONENT_MAX ? e * 10 + (*s - '0') : EXPONENT_MAX;
	*ret = negative ? -e : e;
	return *s == '\0';
}

/* Applies the suffix @s to @x. */
static bool apply_suffix(const char *s, struct decimal *x)
{
	static const char large[] = "KMGTPE", names[] = "num\0kMGTPE";
	const char *at;
	long e;

	if (s[0] && s[1] == 'i' && !s[2]) {
		at = strchr(large, s[0]);
		for (const char *p = large; at && p <= at; p++)
			times_1024(x);
		return at != NULL;
	}
	if (s[0] && s[1]) {
		if ((s[0] != 'e' && s[0] != 'E') || !read_exponent(s, &e))
			return false;
		x->exponent += e;
		return true;
	}
	/* The place in the list is the power of 1000; no suffix at all is the list's own NUL. */
	at = memchr(names, s[0], sizeof(names) - 1);
	if (!at)
		return false;
	x->exponent += 3 * ((long)(at - names) - 3);
	return true;
}

/* The digit that stands for 10^@power. */
static unsigned int digit_at(const struct decimal *x, long power)
{
	long i = power - x->exponent;

	return i >= 0 && (size_t)i < x->n ? x->d[i] : 0;
}

/* @x rounded up to a whole number; false where int64_t does not hold it. */
static bool to_int64(const struct decimal *x, int64_t *ret)
{
	size_t zeros = 0;
	int64_t value = 0;
	long top;

	while (zeros < x->n && x->d[zeros] == 0)
		zeros++;
	if (zeros == x->n) {
		*ret = 0;
		return true;
	}
	top = x->exponent + (long)x->n - 1;
	while (digit_at(x, top) == 0)
		top--;
	/* 10^19 is more than int64_t holds. */
	if (top > 18)
		return false;
	for (long power = top; power >= 0; power--)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (int64_t)digit_at(x, power), &value))
			return false;
	if (x->exponent + (long)zeros < 0 && __builtin_add_overflow(value, 1, &value))
		return false;
	*ret = value;
	return true;
}

static int fail(struct gs_err *err, int code, const char *text, const char *why)
{
	cleanup_free char *quoted = gs_quote(text, strlen(text));

	return gs_err_set(err, code, "%s %s", quoted, why);
}

/* The quantity times 10^@shift, rounded up. */
static int parse(const char *text, long shift, int64_t *ret, struct gs_err *err)
{
	const char *s = text;
	bool negative = *s == '-';
	struct decimal x;
	int64_t value;

	if (*s == '-' || *s == '+')
		s++;
	if (!read_number(&s, &x) || !apply_suffix(s, &x))
		return fail(err, EINVAL, text,
			    "is no quantity (examples: 2, 500m, 1.5, 512Mi, 1e3)");
	x.exponent += shift;
	if (!to_int64(&x, &value))
		return negative ? fail(err, EINVAL, text, "is negative") :
				  fail(err, ERANGE, text, "is too large a quantity");
	if (negative && value > 0)
		return fail(err, EINVAL, text, "is negative");
	*ret = value;
	return 0;
}

int gs_quantity_milli(const char *text, int64_t *ret, struct gs_err *err)
{
	return parse(text, 3, ret, err);
}

int gs_quantity_units(const char *text, int64_t *ret, struct gs_err *err)
{
	return parse(text, 0, ret, err);
}
