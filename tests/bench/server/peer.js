// What one writes with Node.js for the same job: a server that takes Chat Completions, asks a model through the `openai`
// package and streams its pieces on. Nothing is stored. node peer.js MODEL_URL; prints its port.
import express from "express";
import OpenAI from "openai";

const model = new OpenAI({ apiKey: "none", baseURL: process.argv[2], maxRetries: 0 });
const app = express();
app.use(express.json());
app.post("/v1/chat/completions", async (req, res) => {
  const gone = new AbortController();
  res.on("close", () => gone.abort());
  res.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  try {
    const stream = await model.chat.completions.create(
      { model: "mock", messages: req.body.messages, stream: true, stream_options: { include_usage: true } },
      { signal: gone.signal },
    );
    for await (const chunk of stream) res.write(`data: ${JSON.stringify(chunk)}\n\n`);
    res.write("data: [DONE]\n\n");
  } catch (error) {
    res.write(`data: ${JSON.stringify({ error: { message: String(error) } })}\n\n`);
  }
  res.end();
});
const server = app.listen(0, "127.0.0.1", () => console.log(server.address().port));
