// pipelines/triage.yaml as a graph of LangGraph.js: node triage.js [REPEAT]
//
// Classify, route, fan out, join, ask a person, answer. The model is a function that returns what the script of the
// pipeline's first test says. Without REPEAT it runs the case once and prints the nodes that were visited and the answer;
// with it, it prints one line of JSON: processor time of a run with its pause, after REPEAT / 2 runs to warm up.
import { Annotation, Command, END, interrupt, MemorySaver, START, StateGraph } from "@langchain/langgraph";

const replies = {
  classify: { kind: "hard", money: true },
  account: { facts: "two orders" },
  billing: { facts: "charged twice" },
  plan: { steps: ["refund one"] },
  answer: { final_response: "One charge is refunded." },
};
const model = (name) => replies[name];

const State = Annotation.Root({
  raw_input: Annotation(),
  visited: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }),
  outputs: Annotation({ reducer: (a, b) => ({ ...a, ...b }), default: () => ({}) }),
  answer: Annotation(),
});

const node = (name) => async () => ({ visited: [name], outputs: { [name]: await model(name) } });

function build() {
  return new StateGraph(State)
    .addNode("classify", node("classify"))
    .addNode("account", node("account"))
    .addNode("billing", async (state) => {
      if (!state.outputs.classify.money) return {}; // a list edge waits for every source: the node must run to say no
      try {
        return await node("billing")(state);
      } catch {
        return { visited: ["billing"] };
      }
    })
    .addNode("plan", node("plan"))
    .addNode("approve", (state) => ({
      // a node of its own: after the answer a node begins again from its first line
      answer: interrupt({ question: "Do this?", show: state.outputs.plan.steps }),
    }))
    .addNode("reply", node("answer"))
    .addEdge(START, "classify")
    .addConditionalEdges(
      "classify",
      (state) => (state.outputs.classify.kind === "simple" ? "reply" : ["account", "billing"]),
      ["reply", "account", "billing"],
    )
    .addEdge(["account", "billing"], "plan")
    .addEdge("plan", "approve")
    .addConditionalEdges("approve", (state) => (state.answer === "yes" ? "reply" : END), ["reply", END])
    .addEdge("reply", END);
}

const saver = new MemorySaver();
const app = build().compile({ checkpointer: saver });

async function run(i) {
  const id = `thread-${i}`;
  const config = { configurable: { thread_id: id } };
  const cpu = process.cpuUsage();
  await app.invoke({ raw_input: "I was charged twice" }, config);
  const state = await app.invoke(new Command({ resume: "yes" }), config);
  const used = process.cpuUsage(cpu);
  await saver.deleteThread(id);
  return { state, used: (used.user + used.system) * 1000 };
}

const repeat = Number(process.argv[2] ?? 0);
if (repeat > 0) {
  const costs = [];
  for (let i = -Math.ceil(repeat / 2); i < repeat; i++) {
    const { used } = await run(i);
    if (i >= 0) costs.push(used);
  }
  costs.sort((a, b) => a - b);
  console.log(JSON.stringify({ graph: "triage", runs: repeat, cpu_ns: Math.round(costs[0]), median_ns: Math.round(costs[repeat >> 1]) }));
} else {
  const { state } = await run(0);
  console.log(state.visited.join(" -> "));
  console.log(state.outputs.answer.final_response);
}
