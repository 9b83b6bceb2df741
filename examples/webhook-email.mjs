/**
 * Receives webhooks and sends them by email. Install standardwebhooks and nodemailer, and start with
 * PORT=8080 WEBHOOK_SECRET=whsec_… SMTP_URL=smtps://user:password@smtp.example.org MAIL_FROM=… MAIL_TO=… node examples/webhook-email.mjs
 */
import { createServer } from 'node:http'
import { createTransport } from 'nodemailer'
import { Webhook } from 'standardwebhooks'

const { PORT = '8080', WEBHOOK_SECRET, SMTP_URL, MAIL_FROM, MAIL_TO } = process.env
const webhook = new Webhook(WEBHOOK_SECRET)
const transport = createTransport(SMTP_URL)

async function readText(request) {
  const pieces = []
  for await (const piece of request) pieces.push(piece)
  return Buffer.concat(pieces).toString()
}

const server = createServer(async (request, response) => {
  const text = await readText(request)
  let event
  try {
    event = webhook.verify(text, request.headers)
  } catch {
    response.writeHead(401).end()
    return
  }
  const { type, data } = event
  const lines = [data.url, data.error_code, data.text].filter(Boolean)
  try {
    await transport.sendMail({
      from: MAIL_FROM,
      to: MAIL_TO,
      subject: `${type} ${data.conversation_id ?? ''}`.trim(),
      text: lines.join('\n') || type,
      // Uses the same id for each attempt, so that mail programs can hide repeated messages.
      messageId: `<${request.headers['webhook-id']}@parley>`,
    })
    response.writeHead(204).end()
  } catch {
    // Parley sends the event again later.
    response.writeHead(502).end()
  }
})

server.listen(Number(PORT), '127.0.0.1', () => {
  process.stdout.write(`listening on port ${server.address().port}\n`)
})
