/** Tests, with generated definitions, that parsing and rendering preserve every value. */

import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { type DefinitionFormat, parseDefinition, renderMarkdown } from '../../src/agents/definition.ts'
import { ServiceError } from '../../src/lib/errors.ts'
import { type Definition, definition, handWritten, slipped, style } from '../support/definition-texts.ts'

const formats: readonly DefinitionFormat[] = ['yaml', 'markdown']

/** Writes a value as YAML; skips this test run if the YAML library would not read the same value. */
function written(value: object, write: (value: object) => string): string {
  const text = write(value)
  fc.pre(text.isWellFormed() && isDeepStrictEqual(readPlainly(text), value))
  return text
}

/** Parses a text with the YAML library only. */
function readPlainly(text: string): unknown {
  try {
    return parse(text.replace(/^\uFEFF/, ''), { logLevel: 'error' })
  } catch {
    return undefined
  }
}

/** Returns the expected result of parsing: the known keys, with defaults for missing keys. */
function known(value: Definition): object {
  const {
    name,
    instructions,
    model,
    temperature = 0.7,
    tools = [],
    pageTools = 'all',
    behavior,
    embed,
  } = value
  return { name, instructions, model, temperature, tools, pageTools, behavior, embed }
}

/** Returns the front matter of a rendered definition, including unknown keys. */
function configurationOf(markdown: string): unknown {
  return readPlainly(markdown.slice('---\n'.length, markdown.search(/(?<=\n)---\r?\n/)))
}

function withoutInstructions(value: unknown): unknown {
  const { instructions: _, ...rest } = Object(value)
  return rest
}

function outcomeOf(text: string, format: DefinitionFormat): unknown {
  try {
    return parseDefinition(text, format)
  } catch (thrown) {
    return thrown
  }
}

describe('a definition', () => {
  test('has the same values in any YAML style and after conversion to Markdown', () => {
    fc.assert(
      fc.property(definition, style, (value, write) => {
        const text = written(value, write)
        const markdown = renderMarkdown(text, 'yaml')
        expect(parseDefinition(text, 'yaml')).toEqual(known(value))
        expect(parseDefinition(markdown, 'markdown')).toEqual(known(value))
        expect(configurationOf(markdown)).toEqual(withoutInstructions(value))
      }),
      { numRuns: 150 },
    )
  })

  test('in handwritten YAML has the same values after conversion to Markdown', () => {
    fc.assert(
      fc.property(handWritten, (text) => {
        const outcome = outcomeOf(text, 'yaml')
        fc.pre(!(outcome instanceof Error))
        const markdown = renderMarkdown(text, 'yaml')
        expect(parseDefinition(markdown, 'markdown')).toEqual(outcome)
        const finished = text.endsWith('\n') ? text : `${text}\n`
        expect(configurationOf(markdown)).toEqual(withoutInstructions(readPlainly(finished)))
      }),
      { numRuns: 500 },
    )
  })
})

test('an invalid definition is rejected with a one-line error that contains the position', () => {
  fc.assert(
    fc.property(slipped, fc.constantFrom(...formats), (text, format) => {
      const outcome = outcomeOf(format === 'yaml' ? text : `---\n${text}\n---\n\nBe kind.`, format)
      fc.pre(outcome instanceof Error)
      expect(outcome).toBeInstanceOf(ServiceError)
      expect(outcome).toMatchObject({
        reason: 'invalid_value',
        message: expect.stringMatching(/^.{1,1000} \(line \d+, column \d+\)$/u),
      })
    }),
    { numRuns: 500 },
  )
})
