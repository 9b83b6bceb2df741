/** Compiles JSON responses against the types of OpenAI's official client. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { repository } from './process.ts'

/**
 * Replaces the client's types where responses differ from them. The client itself adds `output_text`. It does
 * not declare `store`, the penalties and a null `usage`, which OpenAI sends. Earlier versions of the client
 * require the `name` of finished calls. Only this service has `parley`, the reason `interrupted` and some
 * error codes.
 */
const PRELUDE = `
import type OpenAI from 'openai'
type Official = OpenAI.Responses.Response
type Response = Omit<Official, 'output_text' | 'error' | 'incomplete_details' | 'usage'> & {
  error: { code: string; message: string } | null
  incomplete_details: { reason: 'interrupted' } | Official['incomplete_details']
  usage: OpenAI.Responses.ResponseUsage | null
  store: boolean
  presence_penalty: number
  frequency_penalty: number
}
type Sent<Event> = Event extends { response: Official }
  ? Omit<Event, 'response'> & { response: Response }
  : Event extends OpenAI.Responses.ResponseFunctionCallArgumentsDoneEvent
    ? Event & { name: string }
    : Event
type ResponseEvent = Sent<OpenAI.Responses.ResponseStreamEvent>
type ResponseDeleted = { id: string; object: 'response'; deleted: boolean }
type InputItems = Omit<OpenAI.Conversations.ConversationItemList, 'data'> & { data: OpenAI.Responses.ResponseItem[] }
type Owned<Type> = Type extends unknown ? Type & { parley: object } : never
type Conversation = Owned<OpenAI.Conversations.Conversation>
type ConversationDeleted = OpenAI.Conversations.ConversationDeletedResource
type Item = Owned<OpenAI.Conversations.ConversationItem>
type ItemList = Omit<OpenAI.Conversations.ConversationItemList, 'data'> & { data: Item[] }
type ChatCompletion = OpenAI.Chat.ChatCompletion
type ChatChunk = OpenAI.Chat.ChatCompletionChunk
`

/** The name of a type in the checked program. */
export type AnswerType =
  | 'Response'
  | 'ResponseEvent'
  | 'ResponseDeleted'
  | 'InputItems'
  | 'Conversation'
  | 'ConversationDeleted'
  | 'Item'
  | 'ItemList'
  | 'ChatCompletion'
  | 'ChatChunk'

export interface TypedAnswer {
  readonly type: AnswerType
  readonly json: unknown
}

/** Returns the compiler's errors; empty if all answers match their types and have no unknown fields. */
export async function compileAnswers(answers: readonly TypedAnswer[]): Promise<string> {
  // Must be below node_modules, so that the compiler finds the client's types.
  const parent = join(repository, 'node_modules/.cache')
  await mkdir(parent, { recursive: true })
  const folder = await mkdtemp(join(parent, 'answers-'))
  try {
    const lines = answers.map(
      ({ type, json }, index) => `export const answer${index}: ${type} = ${JSON.stringify(json)}`,
    )
    await writeFile(join(folder, 'answers.ts'), PRELUDE + lines.join('\n'))
    const options = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2024']
    const compiler = join(repository, 'node_modules/typescript/bin/tsc')
    const words = [compiler, '--ignoreConfig', ...options, join(folder, 'answers.ts')]
    return await new Promise((resolve) =>
      execFile(process.execPath, words, { cwd: folder }, (error, stdout, stderr) =>
        resolve(error === null ? '' : stdout + stderr),
      ),
    )
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
