// SPDX-License-Identifier: Apache-2.0
/* A machine with cards, made of a temporary directory. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/xalloc.h"
#include "tests/unit/fakecards.h"
#include "tests/unit/tmpdir.h"

char *fakecards_begin(void)
{
	char *root = tmpdir_make();
	cleanup_free char *sys = gs_asprintf("%s/sys", root);

	tmpdir_write(root, "sys/nothing", "");
	tmpdir_write(root, "dev/nothing", "");
	fakecards_link(root, "proc", "/proc");
	assert_int_equal(setenv(PROBE_ROOT_ENV, root, 1), 0);
	/* It stays: tests that ask for a driver of a node set it again. */
	gs_catalogue_sysfs = gs_steal(sys);
	return root;
}

void fakecards_end(char *root)
{
	assert_int_equal(unsetenv(PROBE_ROOT_ENV), 0);
	free((char *)gs_catalogue_sysfs);
	gs_catalogue_sysfs = "/sys";
	tmpdir_remove(root);
}

void fakecards_link(const char *root, const char *path, const char *to)
{
	cleanup_free char *dir = gs_asprintf("%s.d/x", path), *extra = gs_asprintf("%s.d", path);
	char now[4096];
	ssize_t n = readlink(tmpdir_path(root, path), now, sizeof(now));

	/* It stays where it is right: somebody may watch the folder. */
	if (n == (ssize_t)strlen(to) && memcmp(now, to, (size_t)n) == 0)
		return;

	/* The folders before it. */
	if (strchr(path, '/')) {
		tmpdir_write(root, dir, "");
		assert_int_equal(unlink(tmpdir_path(root, dir)), 0);
		assert_int_equal(rmdir(tmpdir_path(root, extra)), 0);
	}
	(void)unlink(tmpdir_path(root, path));
	assert_int_equal(symlink(to, tmpdir_path(root, path)), 0);
}

void fakecards_copy(const char *root, const char *path, const char *name)
{
	cleanup_free char *from =
		gs_asprintf("%s%s", name[0] == '/' ? "" : "build/programs/", name);
	cleanup_free char *data = NULL;
	struct stat st;
	size_t len;
	int fd;

	if (gs_file_read(AT_FDCWD, from, 0, 64 << 20, &data, &len, &st, NULL) < 0)
		fail_msg("%s is not built", from);
	tmpdir_write(root, path, "");
	/* a new file: somebody may have the old one loaded */
	assert_int_equal(unlink(tmpdir_path(root, path)), 0);
	fd = open(tmpdir_path(root, path), O_WRONLY | O_CREAT | O_CLOEXEC, st.st_mode & 07777);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	(void)close(fd);
}

void fakecards_set(const char *root, unsigned int n, const char *file, const char *text)
{
	cleanup_free char *path = gs_asprintf("sys/class/fakegpu/fakegpu%u/%s", n, file);

	tmpdir_write(root, path, text);
}

void fakecards_add(const char *root, unsigned int n, const char *node)
{
	cleanup_free char *index = gs_asprintf("%u\n", n), *uuid = gs_asprintf("FAKE-%u\n", n);
	cleanup_free char *path = gs_asprintf("dev/fakegpu%u", n);

	fakecards_set(root, n, "index", index);
	fakecards_set(root, n, "uuid", uuid);
	fakecards_set(root, n, "load", "0\n");
	fakecards_set(root, n, "mem_used", "0\n");
	fakecards_set(root, n, "mem_total", "1073741824\n");
	fakecards_link(root, path, node);
}

void fakecards_vendor(const char *root, const char *file, const char *entry)
{
	cleanup_free char *path = gs_asprintf("vendors/%s", file);

	tmpdir_write(root, path, entry);
}

void fakecards_fakegpu(const char *root)
{
	cleanup_free char *text = NULL;
	size_t len;

	assert_int_equal(gs_file_read(AT_FDCWD, "tests/fakegpu/fakegpu.json", 0, 65536, &text, &len,
				      NULL, NULL),
			 0);
	fakecards_vendor(root, "fakegpu.json", text);
}

void fakecards_config(struct gs_config *config, const char *root)
{
	gs_config_init(config);
	gs_strv_free(&config->vendor_dirs);
	gs_strv_add(&config->vendor_dirs, tmpdir_path(root, "vendors"));
}

char *fakecards_program(const char *name)
{
	const char *b = getenv("B");
	cleanup_free char *path = gs_asprintf("%s/%s", b ? b : "build", name);
	char *real = realpath(path, NULL);

	if (!real)
		fail_msg("%s is not built", path);
	return real;
}

json_t *fakecards_ask(struct probe *probe, const char *request)
{
	cleanup_buf struct gs_buf out = { 0 };
	json_t *answer;

	probe_answer(probe, request, strlen(request), &out);
	assert_int_equal(out.data[out.len - 1], '\n');
	answer = json_loads(out.data, 0, NULL);
	assert_non_null(answer);
	return answer;
}

void fakecards_tell(struct probe *probe, const char *entry)
{
	cleanup_buf struct gs_buf request = { 0 };
	cleanup_json json_t *answer = NULL;
	const char *wrong;

	gs_buf_adds(&request, "{\"seq\":7,\"op\":\"vendor\",\"file\":\"x.json\",\"text\":");
	gs_buf_add_json(&request, entry);
	gs_buf_addc(&request, '}');
	answer = fakecards_ask(probe, request.data);
	wrong = fakecards_text(answer, "error");
	if (wrong)
		fail_msg("%s", wrong);
	assert_int_equal((int)fakecards_number(answer, "seq"), 7);
}

json_t *fakecards_at(json_t *answer, const char *path)
{
	while (answer && *path) {
		size_t len = strcspn(path, ".");
		cleanup_free char *part = gs_strndup(path, len);

		answer = json_is_array(answer) ? json_array_get(answer, (size_t)atoi(part)) :
						 json_object_get(answer, part);
		path += len + (path[len] == '.');
	}
	return answer;
}

const char *fakecards_text(json_t *answer, const char *path)
{
	return json_string_value(fakecards_at(answer, path));
}

double fakecards_number(json_t *answer, const char *path)
{
	const json_t *v = fakecards_at(answer, path);

	return json_is_number(v) ? json_number_value(v) : -1;
}

pid_t fakecards_holder(const char *path)
{
	int ready[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int last;

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		last = open(path, O_RDONLY);
		if (last < 0)
			_exit(1);
		/* Of ours nothing stays open: others wait for the end of it. */
		for (int fd = 3; fd < 1024; fd++)
			if (fd != last)
				(void)close(fd);
		for (;;)
			(void)pause();
	}
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 0);
	(void)close(ready[0]);
	return pid;
}

void fakecards_kill(pid_t pid)
{
	int status = 0;

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}
