/**
 * Receives webhooks and posts them to Slack. Install standardwebhooks, and start with
 * PORT=8080 WEBHOOK_SECRET=whsec_… SLACK_WEBHOOK_URL=https://hooks.slack.com/… node examples/webhook-slack.mjs
 */
import { createServer } from 'node:http'
import { Webhook } from 'standardwebhooks'

const { PORT = '8080', WEBHOOK_SECRET, SLACK_WEBHOOK_URL } = process.env
const webhook = new Webhook(WEBHOOK_SECRET)

async function readText(request) {
  const pieces = []
  for await (const piece of request) pieces.push(piece)
  return Buffer.concat(pieces).toString()
}

/** Escapes the characters with which a visitor's text could mention a channel or hide the target of a link. */
function escapeText(text) {
  return String(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

function describe({ type, data }) {
  const id = escapeText(data.conversation_id ?? '')
  const link = data.url ? `<${escapeText(data.url)}|${id}>` : id
  const lines = [data.error_code, data.text].filter(Boolean).map(escapeText)
  return [`*${escapeText(type)}* ${link}`, ...lines].join('\n')
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
  // If Slack does not accept the message, Parley sends the event again later.
  const answer = await fetch(SLACK_WEBHOOK_URL, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    // Slack must not fetch the addresses in a visitor's text.
    body: JSON.stringify({ text: describe(event), unfurl_links: false, unfurl_media: false }),
  }).catch(() => ({ ok: false }))
  response.writeHead(answer.ok ? 204 : 502).end()
})

server.listen(Number(PORT), '127.0.0.1', () => {
  process.stdout.write(`listening on port ${server.address().port}\n`)
})
