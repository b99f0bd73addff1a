// SPDX-License-Identifier: Apache-2.0
/* The terminal as a screen. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "ctl/ctl.h"
#include "ctl/screen.h"

/* Another page, no cursor, no new line at the right edge; and back. */
#define ENTER "\033[?1049h\033[?25l\033[?7l"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"
#define HOME "\033[H"
#define CLEAR_LINE "\033[K"
#define CLEAR_BELOW "\033[J"

static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE };

static struct termios before;
static volatile sig_atomic_t taken;

bool screen_there(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) && term && *term &&
	       strcmp(term, "dumb") != 0;
}

static void put(const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(STDOUT_FILENO, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

/* As it was: all of it may be done within a handler of a signal. */
void screen_close(void)
{
	if (!taken)
		return;
	taken = 0;
	put(LEAVE, strlen(LEAVE));
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
}

/* Whatever waits for a slow agent or API server is left where it is. */
static void on_end(int number)
{
	screen_close();
	(void)signal(number, SIG_DFL);
	(void)raise(number);
}

static int enter(void)
{
	struct termios keys = before;

	/* signals stay what they are: Ctrl-C is one */
	keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	keys.c_cc[VMIN] = 1;
	keys.c_cc[VTIME] = 0;
	taken = 1;
	put(ENTER, strlen(ENTER));
	return tcsetattr(STDIN_FILENO, TCSADRAIN, &keys);
}

/* Ctrl-Z: the shell gets its terminal back, and gives it again. */
static void on_stop(int number)
{
	int saved = errno;

	(void)number;
	screen_close();
	(void)raise(SIGSTOP);
	(void)enter();
	errno = saved;
}

/* It only wakes who waits for a key. */
static void on_size(int number)
{
	(void)number;
}

int screen_open(struct gs_err *err)
{
	struct sigaction act = { .sa_handler = on_end };

	if (tcgetattr(STDIN_FILENO, &before) < 0)
		return gs_err_errno(err, errno, "the terminal");
	for (size_t i = 0; i < GS_ARRAY_SIZE(ends); i++)
		(void)sigaction(ends[i], &act, NULL);
	act.sa_handler = on_stop;
	(void)sigaction(SIGTSTP, &act, NULL);
	act.sa_handler = on_size;
	(void)sigaction(SIGWINCH, &act, NULL);
	if (enter() < 0) {
		int code = errno;

		screen_close();
		return gs_err_errno(err, code, "the terminal");
	}
	return 0;
}

void screen_size(unsigned int *ret_columns, unsigned int *ret_lines)
{
	struct winsize size = { 0 };

	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	*ret_columns = size.ws_col ? size.ws_col : 80;
	*ret_lines = size.ws_row ? size.ws_row : 24;
}

void screen_show(const struct gs_buf *text)
{
	cleanup_buf struct gs_buf all = { 0 };

	gs_buf_adds(&all, HOME);
	if (text->len)
		gs_buf_add(&all, text->data, text->len);
	gs_buf_adds(&all, CLEAR_BELOW);
	put(all.data, all.len);
}

int screen_key(unsigned int timeout_ms)
{
	struct pollfd fd = { .fd = STDIN_FILENO, .events = POLLIN };
	unsigned char key;
	int n = poll(&fd, 1, (int)timeout_ms);

	if (n <= 0)
		return n == 0 || errno == EINTR ? 0 : -1;
	return read(STDIN_FILENO, &key, 1) == 1 ? key : -1;
}

void screen_paint(struct gs_buf *out, const char *text, unsigned int columns, const char *paint)
{
	cleanup_free char *line = ctl_printable(gs_strdup(text));
	const char *end = line;
	unsigned int code;

	for (unsigned int n = 0; *end && n < columns; n++) {
		size_t len = ctl_read_char(end, &code);

		end += len ? len : 1;
	}
	/* between lines, for one behind the last would roll the screen */
	if (out->len)
		gs_buf_adds(out, "\r\n");
	if (paint)
		gs_buf_addf(out, "\033[%sm", paint);
	gs_buf_add(out, line, (size_t)(end - line));
	gs_buf_addf(out, "%s" CLEAR_LINE, paint ? "\033[0m" : "");
}
