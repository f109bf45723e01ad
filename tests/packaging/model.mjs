// node model.mjs FOLDER: a model behind HTTPS on loopback, with FOLDER/key.pem and FOLDER/certificate.pem. FOLDER/port says
// where it listens.
import {readFileSync, renameSync, writeFileSync} from 'node:fs'
import {createServer} from 'node:https'
import {join} from 'node:path'

const [folder] = process.argv.slice(2)
const server = createServer({key: readFileSync(join(folder, 'key.pem')), cert: readFileSync(join(folder, 'certificate.pem'))},
  (request, answer) => {
    request.resume()
    answer.writeHead(200, {'content-type': 'text/event-stream'})
    const event = (choice) => answer.write(`data: ${JSON.stringify({id: 'c1', model: 'm', choices: [choice]})}\n\n`)
    event({index: 0, delta: {role: 'assistant', content: 'By rope and tar.'}, finish_reason: null})
    event({index: 0, delta: {}, finish_reason: 'stop'})
    answer.end('data: [DONE]\n\n')
  })
server.listen(0, '127.0.0.1', () => {
  writeFileSync(join(folder, 'port.new'), String(server.address().port))
  renameSync(join(folder, 'port.new'), join(folder, 'port'))
})
