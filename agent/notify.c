// SPDX-License-Identifier: Apache-2.0
/* Tells systemd how the program is doing. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/notify.h"
#include "common/xalloc.h"

struct notify {
	int fd; /* connected; -1: nobody listens */
	uv_timer_t watchdog; /* data is NULL: never started */
};

/* Never fails. @flags: MSG_DONTWAIT where a systemd that is busy just gets the next one. */
static void tell(struct notify *notify, const char *text, int flags)
{
	if (notify->fd < 0)
		return;
	while (send(notify->fd, text, strlen(text), flags | MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
}

static int open_socket(const char *name, int *ret_fd, struct gs_err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t len = strlen(name);
	int fd;

	if ((name[0] != '/' && name[0] != '@') || len < 2)
		return gs_err_set(err, EINVAL, "NOTIFY_SOCKET=%s: neither a path nor an @name",
				  name);
	if (len >= sizeof(addr.sun_path))
		return gs_err_set(err, EINVAL, "NOTIFY_SOCKET=%s: too long", name);
	memcpy(addr.sun_path, name, len);
	if (name[0] == '@')
		addr.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return gs_err_errno(err, errno, "NOTIFY_SOCKET=%s", name);
	/* An abstract name is as long as the address says, and has no NUL behind it. */
	if (connect(fd, (struct sockaddr *)&addr,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0) {
		int code = errno;

		(void)close(fd);
		return gs_err_errno(err, code, "NOTIFY_SOCKET=%s", name);
	}
	*ret_fd = fd;
	return 0;
}

/* How long the watchdog waits, in microseconds; 0: there is none for this process. */
static int watchdog_usec(uint64_t *ret, struct gs_err *err)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	char *end;

	*ret = 0;
	if (!usec || (pid && strtol(pid, NULL, 10) != getpid()))
		return 0;
	errno = 0;
	*ret = strtoumax(usec, &end, 10);
	if (errno || *usec < '0' || *usec > '9' || *end || *ret == 0 || *ret > UINT64_MAX / 2)
		return gs_err_set(err, EINVAL, "WATCHDOG_USEC=%s: no time in microseconds", usec);
	return 0;
}

static void kick(uv_timer_t *timer)
{
	tell(timer->data, "WATCHDOG=1", MSG_DONTWAIT);
}

int notify_new(uv_loop_t *loop, struct notify **ret, struct gs_err *err)
{
	const char *name = getenv("NOTIFY_SOCKET");
	struct notify *notify;
	uint64_t usec, half;
	int fd = -1, code;

	code = watchdog_usec(&usec, err);
	if (code == 0 && name && *name)
		code = open_socket(name, &fd, err);
	if (code < 0)
		return code;
	notify = gs_calloc(1, sizeof(*notify));
	notify->fd = fd;
	if (fd >= 0 && usec) {
		half = usec / 2000 ? usec / 2000 : 1;
		(void)uv_timer_init(loop, &notify->watchdog);
		notify->watchdog.data = notify;
		(void)uv_timer_start(&notify->watchdog, kick, 0, half);
		/* it is no reason for the loop to go on */
		uv_unref((uv_handle_t *)&notify->watchdog);
	}
	/* They are for us alone, and a child's would only confuse. */
	(void)unsetenv("NOTIFY_SOCKET");
	(void)unsetenv("WATCHDOG_USEC");
	(void)unsetenv("WATCHDOG_PID");
	*ret = notify;
	return 0;
}

void notify_ready(struct notify *notify)
{
	/* there is no next one, and without it we are killed when the start takes too long */
	tell(notify, "READY=1", 0);
}

void notify_stopping(struct notify *notify)
{
	tell(notify, "STOPPING=1", MSG_DONTWAIT);
}

void notify_status(struct notify *notify, const char *fmt, ...)
{
	char text[512] = "STATUS=";
	size_t n = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text + n, sizeof(text) - n, fmt, ap);
	va_end(ap);
	/* A second line would be another message: READY=1, say. */
	for (char *p = text; *p; p++)
		if (*p == '\n')
			*p = ' ';
	tell(notify, text, MSG_DONTWAIT);
}

static void free_now(uv_handle_t *handle)
{
	free(handle->data);
}

void notify_free(struct notify *notify)
{
	if (!notify)
		return;
	if (notify->fd >= 0)
		(void)close(notify->fd);
	notify->fd = -1;
	if (notify->watchdog.data)
		uv_close((uv_handle_t *)&notify->watchdog, free_now);
	else
		free(notify);
}
