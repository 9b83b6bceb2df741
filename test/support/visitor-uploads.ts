/** Uploads files as visitors, and sends messages that contain them. */
import type { Answer, TestApp } from './app.ts'
import type { ChatHarness } from './chat-harness.ts'
import { createFakeClock } from './fake-clock.ts'
import { eventually } from './process.ts'
import { type Creation, postUpload } from './uploads.ts'
import { beginSession, say, type TestVisitor } from './visitors.ts'

/** The bytes of a file that is detected as a ZIP archive. */
export const zip = Buffer.concat([Buffer.from('504b0304140000000000', 'hex'), Buffer.alloc(5_000, 7)])
export const uploadRules = { types: ['archive', 'text'], maxBytes: 10_000, perHour: 3 }

/** Starts a service with an agent whose visitors may upload files, and a session of a visitor. */
export async function startUploads(
  harness: ChatHarness,
  rules: object | undefined = uploadRules,
  env: Readonly<Record<string, string>> = {},
) {
  const clock = createFakeClock()
  const app = await harness.start(env, { clock })
  const { agent_key: key, agent_id: agentId } = await app.createAgent(uploadAgent(rules))
  return { app, clock, key, agentId, one: await beginSession(app, key) }
}

/** Returns the definition of an agent with these upload rules. */
export function uploadAgent(
  rules: object | undefined,
  more: object = { conversations: { keep: '30d' } },
): string {
  const attachments = rules === undefined ? {} : { attachments: { types: ['text'], uploads: rules } }
  return JSON.stringify({ name: 'Reader', instructions: 'Answer.', ...more, ...attachments })
}

export interface Reserved {
  readonly id: string
  readonly token: string
}

export const reserve = (
  { visitor }: Pick<TestVisitor, 'visitor'>,
  filename = 'logs.zip',
  bytes = zip.length,
) => visitor.createUpload.mutate({ filename, bytes })

/** Sends the bytes of a reserved upload in one request. */
export function put(app: TestApp, { token }: Reserved, bytes: Buffer, more: Creation = {}): Promise<Answer> {
  return postUpload({ ...app, key: token }, { size: bytes.length, body: bytes, ...more })
}

/** Uploads a whole file. */
export async function upload(
  app: TestApp,
  one: TestVisitor,
  filename = 'logs.zip',
  bytes = zip,
): Promise<Reserved> {
  const reserved = await reserve(one, filename, bytes.length)
  const { status, text } = await put(app, reserved, bytes)
  if (status !== 201) throw new Error(`${status} ${text}`)
  return reserved
}

/** Sends a message with an upload, and waits for the end of its turn. */
export async function sendUpload(
  one: TestVisitor,
  { id }: Pick<Reserved, 'id'>,
  more: Parameters<typeof say>[2] = {},
) {
  const sent = await say(one, 'Look.', { attachments: [{ type: 'upload', upload: { id } }], ...more })
  const at = { conversation: sent.conversation.id }
  await eventually(async () => (await one.visitor.open.query(at)).turn?.status, 'completed')
  return sent
}

/** Reads an upload with the parent key. */
export const readState = (app: TestApp, { id }: Reserved) => app.call('GET', `/v1/artifacts/${id}`)
