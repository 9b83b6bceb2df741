/** Tests that stored turns keep control characters, which PostgreSQL cannot store in text. */
import { expect, test } from 'vitest'
import { readEvents } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { listItems, resume, sendChat, splitStream, storingAgent } from '../../support/stored-chats.ts'

const harness = await startChatHarness()
const TEXT = 'a\u0000b\u0001c'

const textOf = (stream: string) =>
  readEvents(stream)
    .events.map(({ choices }) => choices[0]?.delta.content ?? '')
    .join('')

test('a stored chat keeps U+0000 in its message, its answer and its events', async () => {
  const app = await harness.start()
  const { agent_key: key } = await app.createAgent(storingAgent())
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'up-chat',
    choices: [{ index: 0, delta, finish_reason }],
  })
  await harness.answerWith([
    chunk({ role: 'assistant', content: TEXT }),
    chunk({ content: TEXT }),
    chunk({}, 'stop'),
  ])
  const { status, text } = await sendChat(app, TEXT, { key })
  expect([status, textOf(text)]).toEqual([200, TEXT + TEXT])
  const [question, answer] = await listItems(app)
  expect(question.content[0].text).toBe(TEXT)
  expect(answer.content[0].text).toBe(TEXT + TEXT)
  const [first] = splitStream(text)
  expect((await resume(app, key, first?.id as string)).text).toBe(text.slice(first?.text.length))
  const [conversation] = (await app.call('GET', '/v1/conversations')).body.data
  expect(conversation.parley.title).toBe('a b c')
  const { body } = await app.call('GET', `/v1/conversations/${conversation.id}/items?order=asc`)
  expect(body.data[1].content[0].text).toBe(TEXT + TEXT)
})
