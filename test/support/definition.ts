/** Provides valid agent definitions and the errors of invalid ones. */
import { expect } from 'vitest'
import { type DefinitionFormat, parseDefinition } from '../../src/agents/definition.ts'
import { ServiceError } from '../../src/lib/errors.ts'

/** The smallest valid definition. A line that a test appends is line 3. */
export const minimalDefinition = 'name: Guide\ninstructions: Be kind.\n'

/** A definition with most of the fields, and with an unknown key. */
export const fullDefinition = `# Shown in the lobby
name: Guide
instructions: |
  Be kind.

  Use find_room for rooms.
model: small # cheap
temperature: 0.2
tools:
  - open_door
  - name: find_room
    description: Finds a room
    inputSchema:
      $schema: http://json-schema.org/draft-07/schema#
      type: object
      properties: { name: { type: string, pattern: "^[A-Z]", example: A1 } }
      required: [name]
    timeout: 5
pageTools: { blocked: [reload] }
behavior: { tone: warm, language: de, rules: [No jokes] }
embed:
  origins: [https://example.com, "https://*.example.com:8443", http://localhost:3000]
  greeting: Hello!
  title: Lobby
  starters: [Where is A1?]
  theme: { primaryColor: '#0f766e', radius: 8, launcherIcon: question, teaser: Questions? }
owner: facilities
`

/** Returns a definition with one tool, whose input schema starts at line 3, column 33. */
export function withSchema(schema: string): string {
  return `${minimalDefinition}tools: [{ name: a, inputSchema: ${schema} }]`
}

/** Returns `count` tool names as items of a YAML list. */
export function toolNames(count: number): string {
  return Array.from({ length: count }, (_, index) => `t${index}`).join(',')
}

/** Returns the error of a definition that must be invalid. */
export function definitionErrorOf(text: string, format: DefinitionFormat = 'yaml'): ServiceError {
  try {
    parseDefinition(text, format)
  } catch (thrown) {
    if (thrown instanceof ServiceError) return thrown
    throw thrown
  }
  throw new Error(`was accepted: ${text.slice(0, 200)}`)
}

/** Asserts that the error has status 400 and this message, whose leading path is also the parameter. */
export function expectDefinitionError(error: ServiceError, message: string): void {
  expect({ reason: error.reason, status: error.status, message: error.message }).toEqual({
    reason: 'invalid_value',
    status: 400,
    message,
  })
  expect(error.details.param).toBe(/^(?!Invalid YAML)([^A-Z][^:]*): /.exec(message)?.[1])
}
