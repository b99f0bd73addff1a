// SPDX-License-Identifier: Apache-2.0
/*
 * The functions of libmnl that common/ calls, for programs in a guest: those are static, and Debian
 * has no static libmnl. Declared by libmnl's own header. What is shipped, and the unit tests, take
 * the real one.
 */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct mnl_socket {
	int fd;
	struct sockaddr_nl addr;
};

/* ---- Sockets. */

struct mnl_socket *mnl_socket_open2(int bus, int flags)
{
	struct mnl_socket *nl = calloc(1, sizeof(*nl));

	if (!nl)
		return NULL;
	nl->fd = socket(AF_NETLINK, SOCK_RAW | flags, bus);
	if (nl->fd >= 0)
		return nl;
	free(nl);
	return NULL;
}

int mnl_socket_close(struct mnl_socket *nl)
{
	int ret = close(nl->fd);

	free(nl);
	return ret;
}

int mnl_socket_bind(struct mnl_socket *nl, unsigned int groups, pid_t pid)
{
	socklen_t len = sizeof(nl->addr);

	nl->addr = (struct sockaddr_nl){ .nl_family = AF_NETLINK,
					 .nl_groups = groups,
					 .nl_pid = (uint32_t)pid };
	if (bind(nl->fd, (struct sockaddr *)&nl->addr, len) < 0)
		return -1;
	return getsockname(nl->fd, (struct sockaddr *)&nl->addr, &len);
}

int mnl_socket_get_fd(const struct mnl_socket *nl)
{
	return nl->fd;
}

unsigned int mnl_socket_get_portid(const struct mnl_socket *nl)
{
	return nl->addr.nl_pid;
}

int mnl_socket_setsockopt(const struct mnl_socket *nl, int type, void *buf, socklen_t len)
{
	return setsockopt(nl->fd, SOL_NETLINK, type, buf, len);
}

ssize_t mnl_socket_sendto(const struct mnl_socket *nl, const void *req, size_t size)
{
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

	return sendto(nl->fd, req, size, 0, (const struct sockaddr *)&kernel, sizeof(kernel));
}

/* ---- Messages. */

struct nlmsghdr *mnl_nlmsg_put_header(void *buf)
{
	memset(buf, 0, MNL_NLMSG_HDRLEN);
	((struct nlmsghdr *)buf)->nlmsg_len = MNL_NLMSG_HDRLEN;
	return buf;
}

static void *tail(const struct nlmsghdr *nlh)
{
	return (char *)nlh + MNL_ALIGN(nlh->nlmsg_len);
}

void *mnl_nlmsg_put_extra_header(struct nlmsghdr *nlh, size_t size)
{
	void *ret = tail(nlh);

	nlh->nlmsg_len += MNL_ALIGN(size);
	return memset(ret, 0, MNL_ALIGN(size));
}

bool mnl_nlmsg_ok(const struct nlmsghdr *nlh, int len)
{
	return len >= (int)sizeof(*nlh) && nlh->nlmsg_len >= sizeof(*nlh) &&
	       (int)nlh->nlmsg_len <= len;
}

struct nlmsghdr *mnl_nlmsg_next(const struct nlmsghdr *nlh, int *len)
{
	*len -= MNL_ALIGN(nlh->nlmsg_len);
	return tail(nlh);
}

void *mnl_nlmsg_get_payload(const struct nlmsghdr *nlh)
{
	return (char *)nlh + MNL_NLMSG_HDRLEN;
}

void *mnl_nlmsg_get_payload_offset(const struct nlmsghdr *nlh, size_t offset)
{
	return (char *)nlh + MNL_NLMSG_HDRLEN + MNL_ALIGN(offset);
}

size_t mnl_nlmsg_get_payload_len(const struct nlmsghdr *nlh)
{
	return nlh->nlmsg_len - MNL_NLMSG_HDRLEN;
}

/* ---- Attributes. */

uint16_t mnl_attr_get_type(const struct nlattr *attr)
{
	return attr->nla_type & NLA_TYPE_MASK;
}

uint16_t mnl_attr_get_payload_len(const struct nlattr *attr)
{
	return (uint16_t)(attr->nla_len - MNL_ATTR_HDRLEN);
}

void *mnl_attr_get_payload(const struct nlattr *attr)
{
	return (char *)attr + MNL_ATTR_HDRLEN;
}

uint8_t mnl_attr_get_u8(const struct nlattr *attr)
{
	return *(uint8_t *)mnl_attr_get_payload(attr);
}

uint16_t mnl_attr_get_u16(const struct nlattr *attr)
{
	return *(uint16_t *)mnl_attr_get_payload(attr);
}

uint32_t mnl_attr_get_u32(const struct nlattr *attr)
{
	return *(uint32_t *)mnl_attr_get_payload(attr);
}

/* Attributes are aligned to four bytes only. */
uint64_t mnl_attr_get_u64(const struct nlattr *attr)
{
	uint64_t ret;

	memcpy(&ret, mnl_attr_get_payload(attr), sizeof(ret));
	return ret;
}

const char *mnl_attr_get_str(const struct nlattr *attr)
{
	return mnl_attr_get_payload(attr);
}

bool mnl_attr_ok(const struct nlattr *attr, int len)
{
	return len >= (int)sizeof(*attr) && attr->nla_len >= sizeof(*attr) &&
	       (int)attr->nla_len <= len;
}

struct nlattr *mnl_attr_next(const struct nlattr *attr)
{
	return (struct nlattr *)((char *)attr + MNL_ALIGN(attr->nla_len));
}

int mnl_attr_validate(const struct nlattr *attr, enum mnl_attr_data_type type)
{
	static const size_t sizes[MNL_TYPE_MAX] = {
		[MNL_TYPE_U8] = 1, [MNL_TYPE_U16] = 2, [MNL_TYPE_U32] = 4, [MNL_TYPE_U64] = 8
	};
	size_t len = mnl_attr_get_payload_len(attr);
	const char *p = mnl_attr_get_payload(attr);

	if ((!sizes[type] || len == sizes[type]) && (type != MNL_TYPE_FLAG || len == 0) &&
	    (type != MNL_TYPE_NUL_STRING || (len && p[len - 1] == '\0')) &&
	    (type != MNL_TYPE_NESTED || len == 0 || len >= MNL_ATTR_HDRLEN))
		return 0;
	errno = ERANGE;
	return -1;
}

int mnl_attr_parse_payload(const void *payload, size_t len, mnl_attr_cb_t cb, void *data)
{
	const struct nlattr *attr = payload;
	const char *end = (const char *)payload + len;
	int ret = MNL_CB_OK;

	for (; mnl_attr_ok(attr, (int)(end - (const char *)attr)); attr = mnl_attr_next(attr)) {
		ret = cb(attr, data);
		if (ret <= MNL_CB_STOP)
			break;
	}
	return ret;
}

int mnl_attr_parse_nested(const struct nlattr *attr, mnl_attr_cb_t cb, void *data)
{
	return mnl_attr_parse_payload(mnl_attr_get_payload(attr), mnl_attr_get_payload_len(attr),
				      cb, data);
}

int mnl_attr_parse(const struct nlmsghdr *nlh, unsigned int offset, mnl_attr_cb_t cb, void *data)
{
	const char *start = mnl_nlmsg_get_payload_offset(nlh, offset);

	return mnl_attr_parse_payload(start, (size_t)((char *)tail(nlh) - start), cb, data);
}

bool mnl_attr_put_check(struct nlmsghdr *nlh, size_t size, uint16_t type, size_t len,
			const void *data)
{
	struct nlattr *attr = tail(nlh);

	if (MNL_ALIGN(nlh->nlmsg_len) + MNL_ATTR_HDRLEN + MNL_ALIGN(len) > size)
		return false;
	memset(attr, 0, MNL_ATTR_HDRLEN + MNL_ALIGN(len));
	attr->nla_type = type;
	attr->nla_len = (uint16_t)(MNL_ATTR_HDRLEN + len);
	if (len)
		memcpy(mnl_attr_get_payload(attr), data, len);
	nlh->nlmsg_len += MNL_ATTR_HDRLEN + MNL_ALIGN(len);
	return true;
}

struct nlattr *mnl_attr_nest_start_check(struct nlmsghdr *nlh, size_t size, uint16_t type)
{
	struct nlattr *nest = tail(nlh);

	return mnl_attr_put_check(nlh, size, NLA_F_NESTED | type, 0, NULL) ? nest : NULL;
}

void mnl_attr_nest_end(struct nlmsghdr *nlh, struct nlattr *nest)
{
	nest->nla_len = (uint16_t)((char *)tail(nlh) - (char *)nest);
}
