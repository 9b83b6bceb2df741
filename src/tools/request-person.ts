/** Defines the tool that a model uses to ask for a person. */
import { REQUEST_PERSON, type ServerTool } from './tools.ts'

const inputSchema = {
  type: 'object',
  properties: {
    reason: { type: 'string', maxLength: 500, description: 'Why a person is needed, in one sentence.' },
  },
  required: ['reason'],
  additionalProperties: false,
}

/** Without `bindRequestPerson`, reports to the model that no person can be asked. */
export const requestPersonTool = {
  name: REQUEST_PERSON,
  description:
    'Asks a person on the team to answer in this conversation. Call it if the user asks for a person, or if you cannot help.',
  inputSchema,
  origin: 'host',
  run: async () => ({ problem: 'this conversation is not stored, so no person can be asked' }),
} satisfies ServerTool

/** Returns the tool for one turn; `ask` returns the result for the model. */
export function bindRequestPerson(ask: (reason: string) => Promise<string>): ServerTool {
  return { ...requestPersonTool, run: async ({ reason }) => ({ text: await ask(String(reason)) }) }
}
