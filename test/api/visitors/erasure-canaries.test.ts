/** Tests that an erasure removes a visitor's data from the data directory, the database and the bucket. */
import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import type { TestApp } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { answer, change } from '../../support/handover.ts'
import { AUDIENCE, createSecret, ISSUER, identify, signIdentity } from '../../support/identities.ts'
import { eventually, makeFolder } from '../../support/process.ts'
import { S3Server } from '../../support/s3-server.ts'
import { findText, openConversations } from '../../support/stored-chats.ts'
import { tool, toolCallResponse } from '../../support/tools.ts'
import { followUntil, isEnd, sayAndWait } from '../../support/visitors.ts'
import { allowLoopback, createWebhook, startReceiver } from '../../support/webhook-receiver.ts'

const harness = await startChatHarness()

/** A unique word for each place. */
const canaries = {
  text: 'quartzalpha',
  answer: 'quartzbravo',
  toolArguments: 'quartzcharlie',
  toolResult: 'quartzdelta',
  pageResult: 'quartzecho',
  file: 'quartzfoxtrot',
  fileName: 'quartzgolf',
  textFileName: 'quartztango',
  largeFile: 'quartzhotel',
  subject: 'quartzindia',
  name: 'quartzjuliett',
  email: 'quartzkilo',
  tag: 'quartzlima',
  note: 'quartzmike',
  comment: 'quartznovember',
  ownerComment: 'quartzoscar',
  reason: 'quartzpapa',
  person: 'quartzquebec',
  personName: 'quartzromeo',
  metadata: 'quartzsierra',
  claim: 'quartzuniform',
  instructions: 'quartzvictor',
  requestMetadata: 'quartzwhiskey',
}
const page = [{ type: 'function' as const, function: { name: 'postMessage_cart', parameters: {} } }]

async function start(env: Readonly<Record<string, string>>) {
  const dataDir = await makeFolder()
  const lookup = tool(() => `The result is ${canaries.toolResult}.`)
  const app = await harness.start(
    { ...allowLoopback, PARLEY_DATA_DIR: dataDir, ...env },
    { clock: systemClock, tools: { lookup } },
  )
  const { agent_key: key, agent_id: agentId } = await app.createAgent(
    JSON.stringify({
      ...{ name: 'Keeper', instructions: 'Answer.', tools: ['lookup'] },
      conversations: { keep: '30d', handover: {} },
      attachments: { types: ['pdf', 'text'], maxCount: 2, maxBytes: 200_000 },
      visitors: { identity: 'optional', jwt: { issuer: ISSUER, audience: AUDIENCE }, claims: ['plan'] },
    }),
  )
  const { url } = await startReceiver()
  await createWebhook(app, {
    url,
    events: ['conversation.created', 'conversation.message'],
    include_text: true,
  })
  return { app, dataDir, key, agentId, secret: await createSecret(app, agentId) }
}

type Started = Awaited<ReturnType<typeof start>>

/** Stores each canary in the data of a new visitor; returns the visitor's id. */
async function storeCanaries({ app, key, agentId, secret }: Started): Promise<string> {
  const identity = await signIdentity(
    { clock: systemClock, secret },
    {
      ...{ sub: canaries.subject, name: canaries.name, email: `${canaries.email}@example.org` },
      plan: canaries.claim,
    },
  )
  const one = await identify({ app, key }, identity)
  await harness.answerWith(
    toolCallResponse('streamed', [{ name: 'lookup', args: `{"for":"${canaries.toolArguments}"}` }]),
    1,
  )
  const { sent } = await sayAndWait(one, `Where is ${canaries.text}?`)
  const conversation = sent.conversation.id
  await sayAndWait(one, `{{up:text It is ${canaries.answer}.}}`, { conversation })
  const pdf = Buffer.from(`%PDF-1.7\n${canaries.largeFile} ${'word '.repeat(20_000)}`).toString('base64')
  const attachments = [
    { type: 'text' as const, text: `[Attached file: ${canaries.textFileName}.txt]\n${canaries.file}` },
    {
      type: 'file' as const,
      file: { filename: `${canaries.fileName}.pdf`, file_data: `data:application/pdf;base64,${pdf}` },
    },
  ]
  await sayAndWait(one, 'Read these.', { conversation, attachments })
  await harness.answerWith(toolCallResponse('streamed', [{ name: 'postMessage_cart' }]), 1)
  const called = await sayAndWait(one, 'Look.', { conversation, tools: page })
  const call = called.events.flatMap((event) =>
    event.event === 'conversation.item' && event.data.item.type === 'function_call' ? [event.data.item] : [],
  )[0]
  const results = [{ call_id: call?.call_id as string, output: `In the cart: ${canaries.pageResult}` }]
  const reported = await one.visitor.toolResults.mutate({
    ...{ turn: called.sent.turn.id, client_id: randomUUID(), results, tools: page },
  })
  await followUntil(one, { conversation, cursor: reported.cursor }, isEnd)
  await one.visitor.rate.mutate({ turn: sent.turn.id, value: 'down', comment: canaries.comment })
  const answered = await app.call('POST', '/v1/responses', {
    ...{ key, headers: { 'X-Parley-Visitor': one.token } },
    body: {
      ...{ model: `agent/${agentId}`, input: 'And then?' },
      instructions: `Answer like ${canaries.instructions}.`,
      metadata: { order: canaries.requestMetadata },
    },
  })
  expect(answered.status, answered.text).toBe(200)
  const rating = { value: 'up', comment: canaries.ownerComment }
  const path = `/v1/conversations/${conversation}`
  const requests = [
    ['PUT', `/v1/turns/${sent.turn.id}/rating`, rating],
    ['PUT', `${path}/tags`, { tags: [canaries.tag] }],
    ['POST', `${path}/notes`, { text: canaries.note }],
    ['POST', path, { metadata: { order: canaries.metadata } }],
  ] as const
  for (const [method, target, given] of requests)
    expect((await app.call(method, target, { body: given })).status, target).toBe(200)
  await one.visitor.requestPerson.mutate({ conversation, reason: canaries.reason })
  expect((await answer(app, conversation, canaries.person, { name: canaries.personName })).status).toBe(200)
  expect((await change(app, conversation, 'handback')).status).toBe(200)
  const { body: found } = await app.call('GET', path)
  return found.parley.visitor.id
}

/** Returns the counts that the receipt must contain, computed with SQL. */
async function countRows(app: TestApp, visitorId: string) {
  const db = await openConversations(app)
  const conversations = await db
    .selectFrom('conversations')
    .select('id')
    .where('visitor_id', '=', visitorId)
    .execute()
  const ids = conversations.map(({ id }) => id)
  const turns = await db.selectFrom('turns').select('id').where('conversation_id', 'in', ids).execute()
  const count = async (table: string, column: string, of: readonly string[]) => {
    const { rows } = await sql<{ n: number }>`
      select count(*) as n from ${sql.table(table)} where ${sql.ref(column)} in (${sql.join(of)})`.execute(db)
    return Number(rows[0]?.n)
  }
  const by = (table: string) => count(table, 'conversation_id', ids)
  const turnIds = turns.map(({ id }) => id)
  return {
    ...{ conversations: ids.length, turns: turnIds.length, items: await by('items') },
    ...{ events: await count('turn_events', 'turn_id', turnIds), search: await by('item_texts') },
    ...{ blobs: await by('item_data'), ratings: await count('ratings', 'turn_id', turnIds) },
    ...{ notes: await by('conversation_notes'), deliveries: await by('webhook_deliveries') },
  }
}

test.each([
  ['the data directory', false],
  ['the data directory and a bucket', true],
])(
  "an erasure removes all of a visitor's data from the database and %s, and counts what it deletes",
  async (_, hasBucket) => {
    const server = hasBucket ? await S3Server.start() : undefined
    const started = await start(server?.environment ?? {})
    const { app, dataDir } = started
    const visitorId = await storeCanaries(started)
    const find = async (word: string) => {
      const found: string[] = []
      // The bytes of a file can be stored as base64; the word begins at a multiple of three bytes.
      for (const spelling of [word, Buffer.from(word.slice(0, 9)).toString('base64')])
        found.push(...(await findText(app, dataDir, spelling)), ...(server?.listKeysWith(spelling) ?? []))
      return found
    }
    for (const [place, word] of Object.entries(canaries)) expect(await find(word), place).not.toEqual([])
    const counts = await countRows(app, visitorId)
    expect(counts).toMatchObject({
      conversations: 2,
      turns: 6,
      blobs: 1,
      ratings: 2,
      notes: 1,
      deliveries: 3,
    })
    const { body } = await app.call('DELETE', `/v1/visitors/${visitorId}`)
    const read = async () => (await app.call('GET', `/v1/erasures/${body.id}`)).body
    expect(await eventually(async () => (await read()).status, 'done')).toBe('done')
    expect((await read()).counts).toEqual(counts)
    for (const [place, word] of Object.entries(canaries)) expect(await find(word), place).toEqual([])
    expect(server?.listBlobs() ?? []).toEqual([])
  },
)
