-- A chat that streams, for wrk; prints its figures as JSON, with the number of answers that are not whole.
local threads = {}
broken = 0

function setup(thread)
   table.insert(threads, thread)
end

wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"model":"mock","stream":true,"messages":[{"role":"user","content":"Good morning."}]}'

function response(status, headers, body)
   if status ~= 200 or not body:find("data: [DONE]\n\n", -14, true) then
      if broken == 0 then
         io.stderr:write(status, ": ", body:sub(-300), "\n")
      end
      broken = broken + 1
   end
end

function done(summary, latency, requests)
   local errors = summary.errors
   local not_whole = 0
   for _, thread in ipairs(threads) do
      not_whole = not_whole + thread:get("broken")
   end
   io.write(string.format(
      '{"chats":%d,"seconds":%f,"ms":%f,"ms_99":%f,"not_whole":%d,"failed":%d}\n', summary.requests,
      summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, not_whole,
      errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
