/*
 * A plugin of the emulator that counts instructions exactly: those between two marks of the firmware, without
 * those of the driver, which has marks of its own. It changes nothing in what runs, and knows addresses only.
 *
 * Arguments: out=FILE, and NAME=ADDRESS for each mark; restart, end, enter and leave are marks with a meaning, every
 * other name is a kind of call. At the end FILE has a line for each kind: name, calls, instructions.
 *
 * The interface is declared here because Debian's emulator comes without its header.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { NO_REGISTERS = 0, ADD_U64 = 0 };
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned, void *), int, void *);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *, int, void *, uint64_t);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

static struct mark {
    char name[24];
    uint64_t address, calls, instructions;
    void (*reached)(struct mark *);
} marks[32];
static size_t marks_count;
static uint64_t executed, call_began, driver_began, driver_took;
static struct mark *running;
static const char *out;

static void begin(struct mark *mark)
{
    running = mark;
    call_began = executed;
    driver_took = 0;
}

static void end(struct mark *mark)
{
    (void)mark;
    if (running) {
        running->calls += 1;
        running->instructions += executed - call_began - driver_took;
        running = NULL;
    }
}

static void enter(struct mark *mark)
{
    (void)mark;
    driver_began = executed;
}

static void leave(struct mark *mark)
{
    (void)mark;
    driver_took += executed - driver_began;
}

static void restart(struct mark *mark)
{
    (void)mark;
    for (size_t at = 0; at < marks_count; at++)
        marks[at].calls = marks[at].instructions = 0;
}

static void at_mark(unsigned processor, void *mark)
{
    (void)processor;
    ((struct mark *)mark)->reached(mark);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    (void)id;
    for (size_t place = 0; place < qemu_plugin_tb_n_insns(block); place++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, place);
        uint64_t address = qemu_plugin_insn_vaddr(instruction);
        qemu_plugin_register_vcpu_insn_exec_inline(instruction, ADD_U64, &executed, 1);
        for (size_t at = 0; at < marks_count; at++)
            if (marks[at].address == address)
                qemu_plugin_register_vcpu_insn_exec_cb(instruction, at_mark, NO_REGISTERS, &marks[at]);
    }
}

static void finish(qemu_plugin_id_t id, void *nothing)
{
    (void)id, (void)nothing;
    FILE *file = fopen(out, "w");
    if (!file)
        return;
    for (size_t at = 0; at < marks_count; at++)
        if (marks[at].reached == begin)
            fprintf(file, "%s %" PRIu64 " %" PRIu64 "\n", marks[at].name, marks[at].calls, marks[at].instructions);
    fclose(file);
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int count,
                                                               char **arguments)
{
    static const struct { const char *name; void (*reached)(struct mark *); } meanings[] = {
        { "restart", restart }, { "end", end }, { "enter", enter }, { "leave", leave },
    };
    (void)info;
    for (int at = 0; at < count; at++) {
        char *value = strchr(arguments[at], '=');
        size_t length = value ? (size_t)(value - arguments[at]) : 0;
        struct mark *mark = &marks[marks_count];
        if (!value || length >= sizeof mark->name || marks_count == sizeof marks / sizeof *marks)
            return 1;
        memcpy(mark->name, arguments[at], length);
        if (strcmp(mark->name, "out") == 0) {
            memset(mark->name, 0, sizeof mark->name);
            out = strdup(value + 1);
            continue;
        }
        mark->address = strtoull(value + 1, NULL, 16);
        mark->reached = begin;
        for (size_t known = 0; known < sizeof meanings / sizeof *meanings; known++)
            if (strcmp(mark->name, meanings[known].name) == 0)
                mark->reached = meanings[known].reached;
        marks_count++;
    }
    if (!out)
        return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, finish, NULL);
    return 0;
}
