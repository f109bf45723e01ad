/* The words in which scenes are written. */
#ifndef RV_TESTS_TURNS_SCENES_H
#define RV_TESTS_TURNS_SCENES_H

#include "tests/unit/turns/room.h"

#define TOOLS                "tools: [ask_agent, read, look, put, send, wipe, action]\n"
#define PLAIN                "\n"
#define SHAPE                "structured_output: true\nproperties: {name: {type: string}, n: {type: integer}}\nrequired: [name]\n"
#define ASK(id, agent, text) id " ask_agent {\"agent_name\":\"" agent "\",\"input_text\":\"" text "\"}"
#define ASKED(id, agent, text)                                                                                         \
    "{\"name\":\"ask_agent\",\"id\":\"" id "\",\"arguments\":{\"agent_name\":\"" agent "\",\"input_text\":\"" text     \
    "\"}}\n"
#define CALLED(name, id, args) "{\"name\":\"" name "\",\"id\":\"" id "\",\"arguments\":" args "}\n"
#define OF(name, id)           " {\"name\":\"" name "\",\"id\":\"" id "\"}\n"
#define SAID(agent, asked, text)                                                                                       \
    "{\"status\":\"success\",\"output\":\"" text "\",\"text_response\":\"" text "\",\"agent_schema\":\"" agent         \
    "\",\"input_text\":\"" asked "\",\"is_structured_output\":false,\"chained_tool_result\":null}"
#define REFUSED(agent, why)                                                                                            \
    "{\"status\":\"error\",\"output\":\"\",\"text_response\":\"\",\"agent_schema\":\"" agent "\",\"error\":\"" why "\"}"
#define DONE   "Final result processed."
#define MISSED "Tool not executed - a final result was already processed."

/* scenes_asked.c */
extern const struct scene room_asked_scenes[];
extern const size_t room_n_asked_scenes;

#endif
