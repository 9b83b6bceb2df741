/**
 * Provides chat and embeddings with a model that runs in this process. `src/providers/create.ts` imports this
 * module on demand.
 */
import { type Clock, unixSeconds } from '../../../src/lib/clock.ts'
import { isJsonObject } from '../../../src/lib/formats/json.ts'
import { newId, type Random } from '../../../src/lib/ids.ts'
import { callersMistake } from '../../../src/providers/failures.ts'
import { BackendFailure, type BackendRequest, type ChatBackend } from '../../../src/providers/provider.ts'
import type { AnswerHead } from '../../../src/providers/render-answer.ts'
import { Embedder } from './embeddings.ts'
import { createWholeWriter, EventWriter } from './format-answer.ts'
import { generateAnswer, type Listener, type LocalAnswer } from './generate.ts'
import type { LocalModel, Place } from './load-model.ts'
import { Queue } from './queue.ts'
import { readChatRequest } from './request.ts'

export { checkLocalModel, loadLocalModel } from './load-model.ts'

interface LocalModelBackendOptions {
  readonly name: string
  readonly model: LocalModel
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  readonly random: Random
}

/** Creates the provider, which runs two requests concurrently, queues six, and rejects more with 429. */
export function createLocalModelBackend(options: LocalModelBackendOptions): ChatBackend {
  const { name, model, clock, random } = options
  const queue = new Queue(model.placeCount, clock)
  const closing = new AbortController()
  const embedder = new Embedder(model)
  const newSeed = () => Buffer.from(random(4)).readUInt32LE()
  const newCallId = () => newId('call_', 24, random)

  const toHead = (body: BackendRequest['body']): AnswerHead => ({
    id: newId('chatcmpl-', 24, random),
    created: unixSeconds(clock),
    model: typeof body.model === 'string' ? body.model : model.id,
  })

  async function answer({ body, signal }: BackendRequest, listener: Listener): Promise<LocalAnswer> {
    const { chat } = model
    if (chat === undefined)
      throw callersMistake('model', 'must be a chat model; this model only creates embeddings')
    const request = readChatRequest(body, { hasTools: chat.hasTools, newSeed })
    const ended = AbortSignal.any([signal, closing.signal])
    return queue.run(ended, (index) => {
      const place = chat.places[index] as Place
      const { monotonic } = clock
      return generateAnswer(request, { model: { ...model, chat }, place, signal: ended, listener, monotonic })
    })
  }

  return {
    name,
    async complete(request) {
      const writer = createWholeWriter(newCallId)
      const ended = await answer(request, writer)
      return Buffer.from(writer.render(toHead(request.body), ended))
    },
    async stream({ body, signal }) {
      const leaving = new AbortController()
      const events = new EventWriter(toHead(body), newCallId, () => leaving.abort())
      const hasUsage = isJsonObject(body.stream_options) && body.stream_options.include_usage === true
      answer({ body, signal: AbortSignal.any([signal, leaving.signal]) }, events).then(
        (ended) => events.finish(ended, hasUsage),
        (reason: unknown) => events.fail(reason),
      )
      return events
    },
    async embed({ body, signal }) {
      const ended = AbortSignal.any([signal, closing.signal])
      return [Buffer.from(await queue.run(ended, () => embedder.embed(body, ended)))]
    },
    async listModels(signal) {
      signal.throwIfAborted()
      const { id, created, contextTokens, chat } = model
      const chats = chat !== undefined
      return [{ id, created, ownedBy: name, contextLength: contextTokens, chats, embeds: true }]
    },
    async close() {
      closing.abort(new BackendFailure('unreachable', 'The local model is shutting down.'))
      await queue.settled()
      await model.model.dispose()
    },
  }
}
