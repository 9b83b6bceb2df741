/**
 * Requests an answer as a stream and returns it complete, so that it can be ended at a limit in bytes. See
 * docs/adr/0085.
 */
import { isJsonObject, listObjects } from '../../lib/formats/json.ts'
import { dataOf, splitRun } from '../sse-reader.ts'
import { askForStream, joinDeltas, type StreamedAnswer } from './answer-stream.ts'
import { type Ask, noUsage, WholeAnswer } from './model-answer.ts'

type Fields = Readonly<Record<string, unknown>>

export const askAndCollect: Ask = async (backend, request, span, options) => {
  const answer = await askForStream(backend, request, span, { ...options, withholdsCalls: true })
  try {
    const chunks: Fields[] = []
    for (let run = answer.first; run !== undefined; run = await answer.next())
      for (const event of splitRun(Buffer.from(run))) chunks.push(JSON.parse(dataOf(event) as string))
    const completion = Buffer.from(JSON.stringify(toCompletion(answer, chunks)))
    return new WholeAnswer(completion, options, answer)
  } catch (thrown) {
    answer.fail(thrown)
    throw thrown
  } finally {
    await answer.close()
  }
}

function toCompletion(answer: StreamedAnswer, chunks: readonly Fields[]): Fields {
  const choices = chunks.flatMap((chunk) => listObjects(chunk.choices))
  const { choices: _, usage: __, ...head } = chunks.at(-1) ?? {}
  return {
    ...head,
    object: 'chat.completion',
    ...answer.names,
    choices: answer.indexes.map((index) =>
      toChoice(
        answer,
        index,
        choices.filter((one) => one.index === index),
      ),
    ),
    usage: answer.usage ?? noUsage,
  }
}

function toChoice(answer: StreamedAnswer, index: number, pieces: readonly Fields[]): Fields {
  const deltas = pieces.flatMap(({ delta }) => (isJsonObject(delta) ? [delta] : []))
  const logprobs = pieces.flatMap((piece) => (isJsonObject(piece.logprobs) ? [piece.logprobs] : []))
  const calls = answer.callsOf(index)
  return {
    index,
    message: {
      role: 'assistant',
      ...joinDeltas(deltas),
      ...(calls.length > 0 && { tool_calls: calls }),
    },
    logprobs: logprobs.length === 0 ? null : joinLists(logprobs),
    finish_reason: answer.finishOf(index) ?? 'stop',
  }
}

/** Joins the lists `content` and `refusal` of log probabilities. */
function joinLists(parts: readonly Fields[]): Fields {
  const join = (name: string) => {
    const lists = parts.flatMap((part) => (Array.isArray(part[name]) ? [part[name]] : []))
    return lists.length === 0 ? null : lists.flat()
  }
  return { content: join('content'), refusal: join('refusal') }
}
