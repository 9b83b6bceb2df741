/** Runs the service inside another program and chats with it. Start with: node library.mjs, next to the installed package `parley` */
import { createService, parseConfig } from 'parley'
import { createClient } from 'parley/client'

const { config } = await parseConfig({ PORT: '0', PARLEY_DATA_DIR: ':memory:' })
const service = await createService({
  config,
  tools: { greet: { description: 'Greets a guest by name.', handler: ({ name }) => `Welcome, ${name}!` } },
  onUploadComplete: ({ filename }) => process.stdout.write(`${filename} was uploaded\n`),
})

const owner = createClient({ url: service.url, key: service.firstParentKey })
const yaml = 'name: Porter\ninstructions: Greet every visitor.\ntools: [greet]\n'
const { agent_key: key } = await owner.agents.create.mutate({ yaml })

const visitor = createClient({ url: service.url, key })
const messages = [{ role: 'user', content: '[[tool:greet {"name":"Ada"}]]' }]
for await (const chunks of await visitor.chat.stream.mutate({ messages })) {
  for (const { choices } of chunks) process.stdout.write(choices[0]?.delta.content ?? '')
}
process.stdout.write('\n')
await service.close()
