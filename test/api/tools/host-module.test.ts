/** Tests how tools are loaded from the `PARLEY_HOOKS` module and from the options of `createService`. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { StartupError } from '../../../src/lib/errors.ts'
import type { ServiceOptions } from '../../../src/server/build.ts'
import { startApp } from '../../support/app.ts'
import { chatRequest } from '../../support/chat-harness.ts'
import { makeFolder } from '../../support/process.ts'
import { agentWith, chat, tool } from '../../support/tools.ts'

async function writeHooks(text: string, name = 'hooks.mjs'): Promise<string> {
  const path = join(await makeFolder(), name)
  await writeFile(path, text)
  return path
}

async function startupErrorOf(
  text: string | undefined,
  options: Partial<ServiceOptions> = {},
): Promise<string> {
  const path = text === undefined ? undefined : await writeHooks(text)
  const thrown = await startApp(path === undefined ? {} : { PARLEY_HOOKS: path }, options).catch(
    (error: unknown) => error,
  )
  expect(thrown).toBeInstanceOf(StartupError)
  const { message } = thrown as StartupError
  return path === undefined ? message : message.replace(path, '<file>')
}

describe('the hooks module', () => {
  test('may be TypeScript and export a list of tool objects', async () => {
    const path = await writeHooks(
      `class Counter {
         readonly name: string = 'count'
         #calls = 0
         handler(): number { return ++this.#calls }
       }
       export const tools = [new Counter()]`,
      'hooks.mts',
    )
    const app = await startApp({ PARLEY_HOOKS: path })
    const { agent_key } = await app.createAgent(agentWith(['count']))
    const body = chatRequest('[[tool:count]][[tool:count]]', { model: 'mock' })
    expect((await chat(app, 'whole', agent_key, body)).content).toBe(
      'The tool answered: 1\nThe tool answered: 2',
    )
  })

  test('is overridden by the tools and handlers in the createService options', async () => {
    const path = await writeHooks(
      `export const tools = { one: { handler: () => 'module' }, two: { handler: () => 'module' } }
       export const onUploadComplete = () => 'module'`,
    )
    const onUploadComplete = () => 'options'
    const app = await startApp(
      { PARLEY_HOOKS: path },
      { tools: { two: tool(() => 'options') }, onUploadComplete },
    )
    const { agent_key } = await app.createAgent(agentWith(['one', 'two']))
    const body = chatRequest('[[tool:one]][[tool:two]]', { model: 'mock' })
    const { content } = await chat(app, 'whole', agent_key, body)
    expect(content).toBe('The tool answered: module\nThe tool answered: options')
    expect(app.service.deps.onUploadComplete).toBe(onUploadComplete)
    expect(app.service.deps.tools.list().map(({ name }) => name)).toEqual(['two', 'one'])
  })
})

describe('invalid hooks', () => {
  test.each<[module: string, sentence: string | RegExp]>([
    ['throw new Error("no database")', 'the file could not be loaded: Error: no database'],
    ['export const tools = {', /^the file could not be loaded: .*$/],
    ['import "./gone.mjs"', /^the file could not be loaded: .*gone\.mjs/],
    ['', 'the file must export tools, onUploadComplete or onConversionEnd.'],
    ['export default { tools: {} }', 'the file must export tools, onUploadComplete or onConversionEnd.'],
    ['export const onUploadComplete = {}', 'onUploadComplete must be a function.'],
    ['export const tools = 7', 'tools must be a list of tools, or an object with tools by name.'],
    ['export const tools = { a: 7 }', 'tools.a must be an object with a handler.'],
    ['export const tools = { a: {} }', 'tools.a.handler must be a function.'],
    ['export const tools = [{ handler() {} }]', 'tools[0].name is required.'],
    [
      'export const tools = { "a b": { handler() {} } }',
      'tools["a b"] must be 1 to 64 letters, digits, _ or -.',
    ],
    [
      'export const tools = { postMessage_a: { handler() {} } }',
      'tools.postMessage_a must not start with postMessage_, which is reserved for the tools of a page.',
    ],
    [
      'const handler = () => {}\nexport const tools = [{ name: "a", handler }, { name: "a", handler }]',
      "tools[1].name repeats 'a'.",
    ],
    ['export const tools = { a: { description: 7, handler() {} } }', 'tools.a.description must be a string.'],
    [
      'export const tools = { a: { inputSchema: [], handler() {} } }',
      'tools.a.inputSchema must be a JSON Schema object.',
    ],
    [
      'export const tools = { a: { inputSchema: { properties: { b: { type: "text" } } }, handler() {} } }',
      /^tools\.a\.inputSchema\.properties\.b\.type must be/,
    ],
    [
      'export const tools = { a: { inputSchema: { $ref: "https://example.org" }, handler() {} } }',
      'tools.a.inputSchema.$ref must refer to a schema inside this one, such as #/$defs/name.',
    ],
    [
      'export const tools = { a: { inputSchema: { $id: "urn:a", $defs: { b: { $id: "urn:a" } } }, handler() {} } }',
      /^tools\.a\.inputSchema is not usable: /,
    ],
  ])('in the module prevent startup with an explanation: %j', async (module, sentence) => {
    const prefix = 'PARLEY_HOOKS (<file>): '
    const said = await startupErrorOf(module)
    expect(said.slice(0, prefix.length)).toBe(prefix)
    if (typeof sentence === 'string') expect(said.slice(prefix.length)).toBe(sentence)
    else expect(said.slice(prefix.length)).toMatch(sentence)
  })

  test('in the createService options prevent startup with an explanation', async () => {
    const tools = { a: { handler: 'no' } } as unknown as ServiceOptions['tools']
    expect(await startupErrorOf(undefined, { tools })).toBe(
      'createService: tools.a.handler must be a function.',
    )
  })
})
