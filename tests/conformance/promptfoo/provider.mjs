// The scripted provider of promptfoo: the answer of a test, or, of a grader, the score that the answer names.
export default class {
    id() {
        return "scripted";
    }

    async callApi(prompt, context) {
        const graded = /score (\d(\.\d+)?)/.exec(prompt);
        if (this.isGrader(prompt))
            return { output: JSON.stringify({ pass: true, score: Number(graded[1]), reason: "as scripted" }) };
        return { output: context.vars.answer, cost: (context.vars.tokens ?? 0) / 1e6 };
    }

    isGrader(prompt) {
        return prompt.includes("names the price");
    }
}
