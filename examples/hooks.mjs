/** Defines a tool that runs on the server. Start with PARLEY_HOOKS=examples/hooks.mjs npm start */
const rooms = [
  { name: 'Gull', beds: 2, bookedUntil: '2027-05-01' },
  { name: 'Heron', beds: 3, bookedUntil: '2027-03-15' },
]

const inputSchema = {
  type: 'object',
  properties: { from: { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\d$' }, beds: { type: 'integer' } },
  required: ['from'],
}

/** The model reads the description and the schema; the handler receives arguments that match the schema. */
const find_room = {
  description: 'Lists the rooms that are free from a given date (YYYY-MM-DD).',
  inputSchema,
  handler: ({ from, beds = 1 }) =>
    rooms.filter((room) => room.beds >= beds && room.bookedUntil <= from).map(({ name }) => name),
}

export const tools = { find_room }
