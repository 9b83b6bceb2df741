/** Tells whoever is still typing what is wrong with a definition, by the same rules that saving it would go by. */
import { z } from 'zod'
import { ServiceError } from '../lib/errors.ts'
import type { DefinitionText } from './agents.ts'
import { AgentDefinition, parseDefinition } from './definition.ts'

const place = z.int().min(1).nullable()

/** What saving the text would say. */
export const DefinitionCheck = z
  .strictObject({
    problem: z
      .strictObject({
        message: z.string(),
        path: z
          .string()
          .nullable()
          .meta({ description: 'Such as `tools[0].name`; null for the whole text.' }),
        line: place,
        column: place,
      })
      .nullable()
      .meta({ description: 'Null when the text is an agent definition.' }),
  })
  .meta({ id: 'DefinitionCheck' })
export type DefinitionCheck = z.output<typeof DefinitionCheck>

export function checkDefinition({ yaml, format }: DefinitionText): DefinitionCheck {
  try {
    parseDefinition(yaml, format)
    return { problem: null }
  } catch (thrown) {
    if (!(thrown instanceof ServiceError)) throw thrown
    const { param = null, position } = thrown.details
    const { line = null, column = null } = position ?? {}
    return { problem: { message: thrown.message, path: param, line, column } }
  }
}

/** JSON Schema (2020-12) of a definition's mapping: what an editor completes and explains by. */
export const definitionSchema: Readonly<Record<string, unknown>> = z.toJSONSchema(AgentDefinition, {
  io: 'input',
  unrepresentable: 'any',
})
