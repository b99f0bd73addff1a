// SPDX-License-Identifier: Apache-2.0
/* Files: read with a bound, written so that a reader sees the old or the new one, never half. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/xalloc.h"

/* ".gpushare-", 16 hex digits and the NUL. */
#define TMP_SUFFIX_MAX 32

/* What a descriptor is called, in @buf; false: it has no name. */
static bool name_of_fd(int fd, char buf[PATH_MAX])
{
	char link[64];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, buf, PATH_MAX - 1);
	if (n <= 0)
		return false;
	buf[n] = '\0';
	return true;
}

/*
 * The whole path of @name in @dirfd, for a message: callers work relative to a descriptor, people
 * do not. Only called when something went wrong, so its readlink(2) costs nobody anything.
 */
static const char *full_path(int dirfd, const char *name, char buf[PATH_MAX])
{
	char dir[PATH_MAX];

	if (name[0] == '/' || dirfd == AT_FDCWD || !name_of_fd(dirfd, dir))
		return name;
	if (snprintf(buf, PATH_MAX, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, name) >= PATH_MAX)
		return name;
	return buf;
}

/* Sets the error "<what> <path>: <errno text>" from errno. */
static int fail(struct gs_err *err, const char *what, int dirfd, const char *name)
{
	int code = errno;
	char buf[PATH_MAX];

	return gs_err_errno(err, code, "%s %s", what, full_path(dirfd, name, buf));
}

static int too_large(struct gs_err *err, int dirfd, const char *path, size_t max)
{
	char buf[PATH_MAX];

	return gs_err_set(err, EFBIG, "%s is larger than %zu bytes", full_path(dirfd, path, buf),
			  max);
}

int gs_file_open_in(const char *root, const char *path, int flags)
{
	cleanup_close int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	if (dir < 0)
		return -errno;
	fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

char *gs_file_real_in(const char *root, const char *path)
{
	cleanup_close int fd = gs_file_open_in(root, path, O_PATH);
	char name[PATH_MAX];

	return fd >= 0 && name_of_fd(fd, name) ? gs_strdup(name) : NULL;
}

int gs_file_read(int dirfd, const char *path, int flags, size_t max, char **ret, size_t *ret_len,
		 struct stat *ret_st, struct gs_err *err)
{
	cleanup_close int fd = -1;
	cleanup_free char *data = NULL;
	char buf[PATH_MAX];
	size_t len = 0, cap;
	struct stat st;
	ssize_t n;

	/* O_NONBLOCK: opening a FIFO that somebody put there must not wait for its writer. */
	fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags);
	if (fd < 0)
		return fail(err, "open", dirfd, path);
	if (fstat(fd, &st) < 0)
		return fail(err, "stat", dirfd, path);
	if (!S_ISREG(st.st_mode))
		return gs_err_set(err, EINVAL, "%s is not a regular file",
				  full_path(dirfd, path, buf));
	if ((uint64_t)st.st_size > max)
		return too_large(err, dirfd, path, max);

	/* One byte more than it has, so that the first read already shows that it has not grown. */
	cap = (st.st_size ? (size_t)st.st_size : 4095) + 1;
	data = gs_malloc(cap + 1);
	for (;;) {
		n = read(fd, data + len, cap - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail(err, "read", dirfd, path);
		len += (size_t)n;
		if (len > max)
			return too_large(err, dirfd, path, max);
		/* procfs and sysfs say a size of 0 or 4096: there only an empty read is the end. */
		if (n == 0 || (st.st_size > 0 && len == (size_t)st.st_size && len < cap))
			break;
		if (len == cap) {
			cap = cap < max ? cap * 2 : max + 1;
			data = gs_reallocarray(data, cap + 1, 1);
		}
	}
	data[len] = '\0';
	*ret = gs_steal(data);
	*ret_len = len;
	if (ret_st)
		*ret_st = st;
	return 0;
}

static int write_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/*
 * A new file with @data beside @name; gives its name in @tmp. The name is random, because a
 * bundle's directory may be written by others (rootless engines), who must not be able to put a
 * link there first; O_EXCL refuses one all the same.
 */
static int write_tmp(int dirfd, const char *name, const char *data, size_t len,
		     const struct stat *like, bool sync, char **tmp, struct gs_err *err)
{
	cleanup_free char *path = gs_malloc(strlen(name) + TMP_SUFFIX_MAX);
	cleanup_close int fd = -1;
	uint64_t r;
	int ret;

	do {
		if (getrandom(&r, sizeof(r), 0) != sizeof(r))
			return gs_err_errno(err, errno, "getrandom");
		(void)sprintf(path, "%s.gpushare-%016llx", name, (unsigned long long)r);
		fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0600);
	} while (fd < 0 && errno == EEXIST);
	if (fd < 0)
		return fail(err, "create a temporary file for", dirfd, name);

	/* Owner first: chown(2) takes set-id bits away. Mode by fchmod: the umask is not ours. */
	if (like && fchown(fd, like->st_uid, like->st_gid) < 0)
		ret = fail(err, "change owner of the new", dirfd, name);
	else if (fchmod(fd, like ? like->st_mode & 07777 : 0600) < 0)
		ret = fail(err, "change mode of the new", dirfd, name);
	else if (write_all(fd, data, len) < 0)
		ret = fail(err, "write", dirfd, name);
	else if (sync && fsync(fd) < 0)
		ret = fail(err, "sync", dirfd, name);
	else if (close(gs_steal_fd(&fd)) < 0 && errno != EINTR) /* NFS and quotas report here */
		ret = fail(err, "write", dirfd, name);
	else
		ret = 0;
	if (ret < 0)
		(void)unlinkat(dirfd, path, 0);
	else
		*tmp = gs_steal(path);
	return ret;
}

static int replace(int dirfd, const char *name, const char *data, size_t len,
		   const struct stat *like, bool sync, struct gs_err *err)
{
	cleanup_free char *tmp = NULL;
	int ret;

	ret = write_tmp(dirfd, name, data, len, like, sync, &tmp, err);
	if (!tmp)
		return ret;
	if (renameat(dirfd, tmp, dirfd, name) < 0) {
		ret = fail(err, "replace", dirfd, name);
		(void)unlinkat(dirfd, tmp, 0);
		return ret;
	}
	/* The new file is in place whatever this says, and a crash leaves one of the two. */
	if (sync)
		(void)fsync(dirfd);
	return 0;
}

int gs_file_replace(int dirfd, const char *name, const char *data, size_t len,
		    const struct stat *like, struct gs_err *err)
{
	return replace(dirfd, name, data, len, like, true, err);
}

int gs_file_publish(int dirfd, const char *name, const char *data, size_t len, struct gs_err *err)
{
	return replace(dirfd, name, data, len, NULL, false, err);
}

int gs_file_create(int dirfd, const char *name, const char *data, size_t len, struct gs_err *err)
{
	cleanup_free char *tmp = NULL;
	int ret;

	ret = write_tmp(dirfd, name, data, len, NULL, true, &tmp, err);
	if (!tmp)
		return ret;
	/* link(2), unlike rename(2), never replaces: of two callers one gets EEXIST. */
	if (linkat(dirfd, tmp, dirfd, name, 0) < 0)
		ret = fail(err, "create", dirfd, name);
	(void)unlinkat(dirfd, tmp, 0);
	if (ret == 0)
		(void)fsync(dirfd);
	return ret;
}

int gs_link_replace(int dirfd, const char *name, const char *text, struct gs_err *err)
{
	cleanup_free char *tmp = gs_malloc(strlen(name) + TMP_SUFFIX_MAX);
	uint64_t r;
	int ret;

	if (getrandom(&r, sizeof(r), 0) != sizeof(r))
		return gs_err_errno(err, errno, "getrandom");
	(void)sprintf(tmp, ".%s-%016llx", name, (unsigned long long)r);
	if (symlinkat(text, dirfd, tmp) < 0)
		return fail(err, "create a temporary link for", dirfd, name);
	if (renameat(dirfd, tmp, dirfd, name) == 0)
		return 0;
	ret = fail(err, "replace", dirfd, name);
	(void)unlinkat(dirfd, tmp, 0);
	return ret;
}

char *gs_link_read(int dirfd, const char *name)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(dirfd, name, text, sizeof(text));

	return n > 0 && (size_t)n < sizeof(text) ? gs_strndup(text, (size_t)n) : NULL;
}

/* Is the open directory one that only its owner, root or us, can put entries into? */
static int check_dir(int fd, const char *path, struct gs_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return gs_err_errno(err, errno, "stat %s", path);
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return gs_err_set(err, EPERM, "%s belongs to user %u, not to root", path,
				  st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return gs_err_set(err, EPERM, "%s may be written by others than root (mode %04o)",
				  path, st.st_mode & 07777);
	return 0;
}

/* mkdir -p of everything before the last part of @path. */
static int make_parents(const char *path, struct gs_err *err)
{
	cleanup_free char *part = gs_strdup(path);

	for (char *p = part + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return gs_err_errno(err, errno, "make directory %s", part);
		*p = '/';
	}
	return 0;
}

/*
 * Opens the directory @name in @dirfd (@path is the same for messages), made 0700 where it is
 * missing and @make is set, and checks it. It may not be a symbolic link: whoever can make one
 * there would choose where our files go.
 */
static int open_part(int dirfd, const char *name, const char *path, bool make, struct gs_err *err)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	cleanup_close int fd = -1;
	int ret;

	fd = openat(dirfd, name, flags);
	if (fd < 0 && errno == ENOENT && make) {
		if (mkdirat(dirfd, name, 0700) < 0 && errno != EEXIST)
			return gs_err_errno(err, errno, "make directory %s", path);
		fd = openat(dirfd, name, flags);
	}
	if (fd < 0 && errno == ENOTDIR)
		return gs_err_set(err, ENOTDIR, "%s is not a directory (links are not followed)",
				  path);
	if (fd < 0)
		return gs_err_errno(err, errno, "open directory %s", path);
	ret = check_dir(fd, path, err);
	return ret < 0 ? ret : gs_steal_fd(&fd);
}

static int open_dir(const char *path, const char *sub, bool make, struct gs_err *err)
{
	cleanup_free char *base = gs_strdup(path), *rest = NULL;
	cleanup_close int fd = -1;
	char *part, *save = NULL;
	int ret;

	/* "dir/" would be followed if dir were a link, O_NOFOLLOW or not. */
	for (size_t n = strlen(base); n > 1 && base[n - 1] == '/'; n--)
		base[n - 1] = '\0';
	if (make && access(base, F_OK) < 0 && errno == ENOENT) {
		ret = make_parents(base, err);
		if (ret < 0)
			return ret;
	}
	fd = open_part(AT_FDCWD, base, base, make, err);
	if (fd < 0 || !sub)
		return gs_steal_fd(&fd);

	rest = gs_strdup(sub);
	for (part = strtok_r(rest, "/", &save); part; part = strtok_r(NULL, "/", &save)) {
		cleanup_free char *whole = gs_asprintf("%s/%s", base, part);
		int next;

		if (strcmp(part, "..") == 0 || strcmp(part, ".") == 0)
			return gs_err_set(err, EINVAL, "%s: no name for a directory", whole);
		next = open_part(fd, part, whole, make, err);
		if (next < 0)
			return next;
		(void)close(fd);
		fd = next;
		free(base);
		base = gs_steal(whole);
	}
	return gs_steal_fd(&fd);
}

int gs_dir_make(const char *path, const char *sub, struct gs_err *err)
{
	return open_dir(path, sub, true, err);
}

int gs_dir_open(const char *path, const char *sub, struct gs_err *err)
{
	return open_dir(path, sub, false, err);
}

DIR *gs_opendirat(int dirfd, const char *name)
{
	cleanup_close int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (dir)
		(void)gs_steal_fd(&fd);
	return dir;
}

int gs_dir_names(int dirfd, const char *ending, bool (*valid)(const char *name),
		 struct gs_strv *ret)
{
	cleanup_strv struct gs_strv list = { 0 };
	cleanup_dir DIR *dir = gs_opendirat(dirfd, ".");
	size_t n = strlen(ending);
	struct dirent *entry;

	if (!dir)
		return -errno;
	for (errno = 0; (entry = readdir(dir)); errno = 0) {
		cleanup_free char *name = gs_strdup(entry->d_name);
		size_t len = strlen(name);

		if (len < n || strcmp(name + len - n, ending) != 0)
			continue;
		name[len - n] = '\0';
		if (valid(name))
			gs_strv_take(&list, gs_steal(name));
	}
	if (errno)
		return -errno;
	gs_strv_sort(&list);
	*ret = list;
	list = (struct gs_strv){ 0 };
	return 0;
}
