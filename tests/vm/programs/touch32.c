// SPDX-License-Identifier: Apache-2.0
/*
 * A real 32-bit caller of a driver, with no 32-bit compiler or libc needed:
 *
 *	touch32 NODE TOKEN [TIMES]
 *
 * The code below is i386's. It is written out as an ELF file of that class, and run in this
 * process's place: opens NODE, waits for a byte or the end of stdin, and makes TIMES ioctls
 * FAKEGPU_WORK_ECHO with TOKEN, TOKEN + 1, ... The exit status is the errno of what failed, or 0;
 * 77 where the kernel runs no such program.
 */
#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fakegpu/fakegpu.h"

/* What a test script takes for "not here". */
#define SKIPPED 77

#ifdef __x86_64__

#define BASE 0x08048000
#define SIZE_OF_PATH 64

/* Behind the code: the number of calls, the request, the argument, the path, what is read. */
__asm__(".section .rodata\n"
	".code32\n"
	".globl image32, image32_fields, image32_end\n"
	"image32:\n"
	"	call 1f\n"
	"1:	popl %ebp\n"
	"	addl $image32_fields - 1b, %ebp\n"
	"	movl $5, %eax\n" /* open(path, O_RDWR) */
	"	leal 24(%ebp), %ebx\n"
	"	movl $2, %ecx\n"
	"	xorl %edx, %edx\n"
	"	int $0x80\n"
	"	testl %eax, %eax\n"
	"	js 3f\n"
	"	movl %eax, %esi\n"
	"	movl $3, %eax\n" /* read(0, &a word, 1) */
	"	xorl %ebx, %ebx\n"
	"	leal 88(%ebp), %ecx\n"
	"	movl $1, %edx\n"
	"	int $0x80\n"
	"	movl %esi, %ebx\n"
	"2:	movl $54, %eax\n" /* ioctl(fd, request, &argument) */
	"	movl 4(%ebp), %ecx\n"
	"	leal 8(%ebp), %edx\n"
	"	int $0x80\n"
	"	testl %eax, %eax\n"
	"	js 3f\n"
	"	incl 8(%ebp)\n"
	"	decl 0(%ebp)\n"
	"	jnz 2b\n"
	"	xorl %eax, %eax\n"
	"3:	negl %eax\n"
	"	movl %eax, %ebx\n"
	"	movl $1, %eax\n" /* exit(-result) */
	"	int $0x80\n"
	"	.balign 8\n"
	"image32_fields:\n"
	"	.skip 24 + 64 + 8\n"
	"image32_end:\n"
	".code64\n"
	".text\n");

extern const char image32[], image32_fields[], image32_end[];

struct fields {
	uint32_t times;
	uint32_t request;
	struct fakegpu_echo echo;
	char path[SIZE_OF_PATH];
};

struct image {
	Elf32_Ehdr elf;
	Elf32_Phdr segment;
	char code[512];
};

static int run(const struct fields *fields)
{
	/* Numbers, for they are symbols of one piece of code and not of one array. */
	size_t size = (uintptr_t)image32_end - (uintptr_t)image32;
	size_t at = (uintptr_t)image32_fields - (uintptr_t)image32;
	size_t headers = offsetof(struct image, code);
	char *none[] = { NULL };
	char *argv[] = { "touch32", NULL };
	static struct image image;
	int fd;

	memcpy(image.elf.e_ident, ELFMAG, SELFMAG);
	image.elf.e_ident[EI_CLASS] = ELFCLASS32;
	image.elf.e_ident[EI_DATA] = ELFDATA2LSB;
	image.elf.e_ident[EI_VERSION] = EV_CURRENT;
	image.elf.e_type = ET_EXEC;
	image.elf.e_machine = EM_386;
	image.elf.e_version = EV_CURRENT;
	image.elf.e_entry = (Elf32_Addr)(BASE + headers);
	image.elf.e_phoff = offsetof(struct image, segment);
	image.elf.e_ehsize = sizeof(image.elf);
	image.elf.e_phentsize = sizeof(image.segment);
	image.elf.e_phnum = 1;
	image.segment.p_type = PT_LOAD;
	image.segment.p_vaddr = BASE;
	image.segment.p_filesz = (Elf32_Word)(headers + size);
	image.segment.p_memsz = (Elf32_Word)(headers + size);
	image.segment.p_flags = PF_R | PF_W | PF_X;
	image.segment.p_align = 4096;
	memcpy(image.code, image32, size);
	memcpy(image.code + at, fields, sizeof(*fields));

	fd = memfd_create("touch32", 0);
	if (fd < 0 || write(fd, &image, headers + size) != (ssize_t)(headers + size)) {
		perror("touch32: memfd");
		return 1;
	}
	fexecve(fd, argv, none);
	return errno == ENOEXEC ? SKIPPED : 1;
}

int main(int argc, char **argv)
{
	struct fields fields = { .request = FAKEGPU_WORK_ECHO, .times = 1 };

	_Static_assert(sizeof(fields) == 24 + SIZE_OF_PATH, "as the code has it");
	if (argc < 3 || strlen(argv[1]) >= sizeof(fields.path)) {
		fputs("usage: touch32 NODE TOKEN [TIMES]\n", stderr);
		return 2;
	}
	strcpy(fields.path, argv[1]);
	fields.echo.token = strtoull(argv[2], NULL, 0);
	if (argc > 3)
		fields.times = (uint32_t)strtoul(argv[3], NULL, 0);
	return run(&fields);
}

#else

int main(void)
{
	return SKIPPED;
}

#endif
