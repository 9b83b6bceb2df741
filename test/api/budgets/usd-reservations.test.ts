/** Tests that budgets in US dollars reserve the most that a call can cost. */

import { describe, expect, test } from 'vitest'
import type { TestApp } from '../../support/app.ts'
import { createUsdBudget, readBudget } from '../../support/budgets.ts'
import type { ChatBody } from '../../support/metered-provider.ts'
import {
  hello,
  INPUT,
  inputOf,
  METERED,
  OUTPUT,
  PER_CALL,
  startPriced,
  usd,
} from '../../support/priced-provider.ts'
import { sendChat } from '../../support/usage.ts'

/** Sends a chat, and returns what the budget has reserved while the provider answers. */
async function readReserved(request: object): Promise<{ reserved: string; sent: ChatBody | undefined }> {
  const reading = Promise.withResolvers<string>()
  const started: { app?: TestApp; id?: string } = {}
  const { app, provider } = await startPriced(async () => {
    const { app, id } = started as Required<typeof started>
    reading.resolve((await readBudget(app, id)).reserved)
    return {}
  })
  Object.assign(started, { app, id: await createUsdBudget(app) })
  const { status, text } = await sendChat(app, 'hello', { ...METERED, ...request })
  if (status !== 200) throw new Error(text)
  return { reserved: await reading.promise, sent: provider.requests[0] }
}

describe('the reservation of a call', () => {
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }
  const audio = {
    type: 'input_audio',
    input_audio: { data: Buffer.alloc(3_000).toString('base64'), format: 'wav' },
  }
  const file = { type: 'file', file: { file_data: 'x', filename: 'a.pdf' } }
  const withMedia = (part: object) => [{ role: 'user', content: [{ type: 'text', text: 'a' }, part] }]
  const bare = (type: string) => inputOf([{ role: 'user', content: [{ type: 'text', text: 'a' }, { type }] }])
  const lookup = [{ type: 'function', function: { name: 'lookup' } }]
  const prediction = { type: 'content', content: 'hello' }

  test.each<[string, object, number]>([
    ['without a limit', {}, inputOf(hello) * INPUT + 4096 * OUTPUT],
    ['with max_tokens', { max_tokens: 100 }, inputOf(hello) * INPUT + 100 * OUTPUT],
    ['with n', { max_tokens: 100, n: 4 }, inputOf(hello) * INPUT + 400 * OUTPUT],
    [
      'with a service tier',
      { max_tokens: 100, service_tier: 'priority' },
      2 * (inputOf(hello) * INPUT + 100 * OUTPUT),
    ],
    [
      'with tools',
      { max_tokens: 100, tools: lookup },
      (inputOf(hello, { tools: lookup }) + 300) * INPUT + 100 * OUTPUT,
    ],
    [
      'with a predicted output',
      { max_tokens: 100, prediction },
      inputOf(hello) * INPUT + (100 + Buffer.byteLength(JSON.stringify(prediction))) * OUTPUT,
    ],
    [
      'with web search',
      { max_tokens: 100, web_search_options: {} },
      inputOf(hello) * INPUT + 100 * OUTPUT + 10_000_000,
    ],
    [
      'with an image',
      { max_tokens: 100, messages: withMedia(image) },
      (bare('image_url') + 1445) * INPUT + 100 * OUTPUT,
    ],
    [
      'with audio',
      { max_tokens: 100, messages: withMedia(audio) },
      bare('input_audio') * INPUT + 47 * 10_000 + 100 * OUTPUT,
    ],
    [
      'with a file',
      { max_tokens: 100, messages: withMedia(file) },
      (bare('file') + 40_000) * INPUT + 100 * OUTPUT,
    ],
    [
      'that asks for audio',
      { max_tokens: 100, modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } },
      inputOf(hello) * INPUT + 100 * 20_000,
    ],
    [
      'with an input that can reach a higher rate',
      { max_tokens: 100, messages: [{ role: 'user', content: 'a'.repeat(100_000) }] },
      inputOf([{ role: 'user', content: 'a'.repeat(100_000) }]) * 4_000 + 100 * 6_000,
    ],
  ])('%s is the most that it can cost', async (_what, request, nano) => {
    const { reserved } = await readReserved(request)
    expect(reserved).toBe(usd(nano + PER_CALL))
  })
})
