// Three mistakes in a graph that opens two branches, in LangGraph.js: node mistakes.js
//
// Prints for each what compile() says, the nodes that a run visits, and what the run says. docs/explanation/compared.md
// shows the same mistakes in pipelines.
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  visited: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }),
  facts: Annotation(),
});
const node = (name, more) => () => ({ visited: [name], ...more });
const both = ["account", "billing"];

function graph(account, billing) {
  return new StateGraph(State)
    .addNode("classify", node("classify"))
    .addNode("account", node("account", account))
    .addNode("billing", node("billing", billing))
    .addNode("plan", node("plan"))
    .addNode("reply", node("reply"))
    .addEdge(START, "classify")
    .addEdge("plan", "reply")
    .addEdge("reply", END);
}

const mistakes = {
  "a join waits for a branch that is not opened": () =>
    graph()
      .addConditionalEdges("classify", () => ["account"], both)
      .addEdge(both, "plan"),
  "two branches write one key": () =>
    graph({ facts: "order 7" }, { facts: "two charges" })
      .addConditionalEdges("classify", () => both, both)
      .addEdge(both, "plan"),
  "a branch jumps past the join": () =>
    graph()
      .addConditionalEdges("classify", () => both, both)
      .addEdge("account", "plan")
      .addEdge("billing", "reply"),
};

for (const [what, build] of Object.entries(mistakes)) {
  console.log(`${what}:`);
  let app;
  try {
    app = build().compile();
    console.log("  compile: nothing");
  } catch (e) {
    console.log(`  compile: ${e.message}`);
    continue;
  }
  const visited = [];
  try {
    for await (const step of await app.stream({}, { streamMode: "updates" })) visited.push(Object.keys(step).join(" + "));
    console.log(`  run: ${visited.join(" -> ")}, then it is done`);
  } catch (e) {
    console.log(`  run: ${visited.join(" -> ")}, then: ${e.message.split("\n")[0]}`);
  }
}
