// SPDX-License-Identifier: Apache-2.0
/* Errors go where the caller looks. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "runtime/report.h"

/* crun's --log may begin with a driver; what is no file we leave alone. */
static const char *log_path(const char *log)
{
	if (!log || strncmp(log, "syslog:", 7) == 0 || strncmp(log, "journald:", 9) == 0)
		return NULL;
	return strncmp(log, "file:", 5) == 0 ? log + 5 : log;
}

void report_error(const struct command *cmd, const char *msg)
{
	const char *path = log_path(cmd->log);
	cleanup_buf struct gs_buf line = { 0 };
	cleanup_close int fd = -1;
	char full[GS_ERR_MAX + 16];
	char when[40];

	/* the kubelet shows it in an event, where nothing else tells whose words these are */
	(void)snprintf(full, sizeof(full), "gpushare: %s", msg);
	(void)fprintf(stderr, "gpushare-runtime: %s\n", msg);
	gs_log(GS_LOG_ERROR, "%s", msg);
	if (!path || !*path)
		return;
	gs_log_time(when);
	if (cmd->log_format && strcmp(cmd->log_format, "json") == 0) {
		gs_buf_adds(&line, "{\"level\":\"error\",\"msg\":");
		gs_buf_add_json(&line, full);
		gs_buf_addf(&line, ",\"time\":\"%s\"}\n", when);
	} else {
		gs_buf_addf(&line, "time=\"%s\" level=error msg=", when);
		gs_buf_add_json(&line, full);
		gs_buf_addc(&line, '\n');
	}
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (fd >= 0 && write(fd, line.data, line.len) < 0)
		(void)fprintf(stderr, "gpushare-runtime: write %s failed\n", path);
}
