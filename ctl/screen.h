/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpusharectl top: the terminal as a screen. Every terminal of today understands the few sequences
 * that it takes (ECMA-48, xterm). However the program ends, by a signal too, the terminal is as it
 * was; only SIGKILL leaves it as it is.
 */
#ifndef GPUSHARE_CTL_SCREEN_H
#define GPUSHARE_CTL_SCREEN_H

#include <stdbool.h>

#include "common/buf.h"
#include "common/err.h"

/* Is stdout a terminal, and one that understands anything (TERM is neither missing nor "dumb")? */
bool screen_there(void);

/* Takes the terminal of stdin and stdout: another page, no cursor, keys at once. */
int screen_open(struct gs_err *err);

/* Gives it back. Nothing happens where it is not taken. */
void screen_close(void);

/* How many characters and lines there are. */
void screen_size(unsigned int *ret_columns, unsigned int *ret_lines);

/* Shows @text, lines without anything a terminal obeys but screen_paint()'s, from the first on. */
void screen_show(const struct gs_buf *text);

/*
 * Waits for a key, but no longer than that. Gives it, 0 where the time is over, or the size is
 * another one; -1: there will be no more.
 */
int screen_key(unsigned int timeout_ms);

/*
 * Appends the line @text cut to @columns characters, with "\r\n" before all but the first. @paint:
 * a sequence of ECMA-48's SGR ("1;31"), or NULL: as it is. What is no character, or not printable,
 * is '?'.
 */
void screen_paint(struct gs_buf *out, const char *text, unsigned int columns, const char *paint);

#endif
