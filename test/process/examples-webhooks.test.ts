/** Tests the webhook receivers in examples/ with a fake Slack and a fake mail server. */
import { spawn } from 'node:child_process'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { expect, onTestFinished, test, vi } from 'vitest'
import { repository } from '../support/process.ts'

vi.setConfig({ testTimeout: 30_000 })

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const event = JSON.stringify({
  type: 'conversation.created',
  timestamp: '2026-11-24T10:00:00Z',
  data: {
    conversation_id: 'conv_1',
    url: 'https://chat.example.org/console/conversations/conv_1',
    text: 'Hello?',
  },
})
const unsafeEvent = JSON.stringify({
  ...JSON.parse(event),
  data: { conversation_id: 'conv_1', text: '<!channel> <https://evil.example|a & b>' },
})

async function listen(server: Server | ReturnType<typeof createHttpServer>): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

/** Starts an example; returns a function that sends it an event. */
async function startExample(name: string, env: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [`examples/${name}`], {
    cwd: repository,
    env: { ...process.env, PORT: '0', WEBHOOK_SECRET: secret, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill())
  const port = await new Promise<string>((resolve) =>
    child.stdout.on('data', (text) => resolve(/port (\d+)/.exec(String(text))?.[1] ?? '')),
  )
  return async (signedWith: string, body = event) => {
    const sentAt = new Date()
    const headers = {
      'webhook-id': 'whd_1',
      'webhook-timestamp': String(Math.floor(sentAt.getTime() / 1000)),
      'webhook-signature': new Webhook(signedWith).sign('whd_1', sentAt, body),
    }
    return (await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body })).status
  }
}

const otherSecret = `whsec_${Buffer.alloc(32, 8).toString('base64')}`

test('the Slack example escapes texts, posts only events with a valid signature, and returns 502 if Slack fails', async () => {
  const posted: unknown[] = []
  let status = 200
  const slack = createHttpServer(async (request, response) => {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece)
    posted.push(JSON.parse(Buffer.concat(pieces).toString()))
    response.writeHead(status).end('ok')
  })
  const port = await listen(slack)
  const send = await startExample('webhook-slack.mjs', { SLACK_WEBHOOK_URL: `http://127.0.0.1:${port}/hook` })
  expect(await send(otherSecret)).toBe(401)
  expect(await send(secret)).toBe(204)
  expect(await send(secret, unsafeEvent)).toBe(204)
  status = 500
  expect(await send(secret)).toBe(502)
  const text = '*conversation.created* <https://chat.example.org/console/conversations/conv_1|conv_1>\nHello?'
  const escaped = '*conversation.created* conv_1\n&lt;!channel&gt; &lt;https://evil.example|a &amp; b&gt;'
  const without = { unfurl_links: false, unfurl_media: false }
  expect(posted).toEqual([text, escaped, text].map((one) => ({ text: one, ...without })))
})

test('the email example sends only events with a valid signature, and returns 502 if the mail server fails', async () => {
  const mails: string[] = []
  const port = await listen(createServer((socket) => serveMail(socket, mails)))
  const mail = { MAIL_FROM: 'parley@example.org', MAIL_TO: 'team@example.org' }
  const send = await startExample('webhook-email.mjs', { SMTP_URL: `smtp://127.0.0.1:${port}`, ...mail })
  expect(await send(otherSecret)).toBe(401)
  expect(await send(secret)).toBe(204)
  expect(mails).toHaveLength(1)
  for (const part of [
    'Subject: conversation.created conv_1',
    'To: team@example.org',
    '<whd_1@parley>',
    'Hello?',
  ])
    expect(mails[0]).toContain(part)
  const failing = await startExample('webhook-email.mjs', { SMTP_URL: 'smtp://127.0.0.1:1', ...mail })
  expect(await failing(secret)).toBe(502)
})

/** Accepts one mail for each connection, as in RFC 5321. */
function serveMail(socket: import('node:net').Socket, mails: string[]): void {
  let text = ''
  let isData = false
  socket.write('220 mail\r\n')
  socket.on('data', (piece) => {
    text += piece
    for (;;) {
      const end = text.indexOf(isData ? '\r\n.\r\n' : '\r\n')
      if (end < 0) return
      const line = text.slice(0, end)
      text = text.slice(end + (isData ? 5 : 2))
      if (isData) mails.push(line)
      const begins = !isData && /^data$/i.test(line)
      isData = begins
      socket.write(begins ? '354 continue\r\n' : '250 ok\r\n')
    }
  })
}
