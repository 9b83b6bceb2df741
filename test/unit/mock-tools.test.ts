/** Tests which tools the mock backend calls, and with which arguments. */
import { describe, expect, test } from 'vitest'
import {
  callsOf,
  chatRequest,
  clock,
  firstChoiceOf,
  joinChoice,
  streamChunks,
  tool,
  weather,
} from '../support/mock.ts'

describe('the mock backend', () => {
  const both = { tools: [clock, weather] }
  const filled = { city: 'text', unit: 'kelvin' }
  const allowed = (mode: string, ...tools: unknown[]) => ({
    tool_choice: { type: 'allowed_tools', allowed_tools: { mode, tools } },
  })

  test.each([
    ['a name in the text', 'please get_weather now', both, [['get_weather', filled]]],
    [
      'names in the order of the text',
      'get_weather, then get_time.',
      both,
      [
        ['get_weather', filled],
        ['get_time', {}],
      ],
    ],
    [
      'one name without parallel calls',
      'get_weather get_time',
      { ...both, parallel_tool_calls: false },
      [['get_weather', filled]],
    ],
    [
      'one directive without parallel calls',
      '[[tool:a]] [[tool:b]]',
      { parallel_tool_calls: false },
      [['a', {}]],
    ],
    ['part of a longer name (no call)', 'get_weathers my-get_time', both, []],
    ['no name (no call)', 'hello', { ...both, tool_choice: 'auto' }, []],
    ['the choice none (no call)', 'get_weather [[tool:get_time]]', { ...both, tool_choice: 'none' }, []],
    ['the choice required', 'hello', { ...both, tool_choice: 'required' }, [['get_time', {}]]],
    [
      'the choice required and a name',
      'get_weather',
      { ...both, tool_choice: 'required' },
      [['get_weather', filled]],
    ],
    ['the choice required without tools', 'hello', { tool_choice: 'required' }, []],
    ['a named function', 'get_time', { ...both, tool_choice: weather }, [['get_weather', filled]]],
    ['a named function that is not offered', 'get_time', { ...both, tool_choice: tool('other') }, []],
    [
      'allowed tools in required mode',
      'get_time',
      { ...both, ...allowed('required', weather) },
      [['get_weather', filled]],
    ],
    [
      'allowed tools in auto mode',
      'get_time get_weather',
      { ...both, ...allowed('auto', clock) },
      [['get_time', {}]],
    ],
    ['allowed tools in auto mode without a name', 'hello', { ...both, ...allowed('auto', clock) }, []],
  ])('chooses tool calls by the text and the tool choice: %s', async (_, text, more, calls) => {
    expect(await callsOf(chatRequest(text, more))).toEqual(calls)
  })

  test.each([
    ['city=Paris, days=3!', { city: 'Paris', days: 3, unit: 'kelvin' }],
    ['city="New York" celsius=true unit=celsius', { city: 'New York', celsius: true, unit: 'celsius' }],
    ["(city='') tags=a,b", { city: '', unit: 'kelvin', tags: ['a', 'b'] }],
    ['days=9 celsius=maybe unit=x other=1', { ...filled, days: 1, celsius: true }],
    ['city=🏙️ days=2.5 __proto__=x', { city: '🏙️', unit: 'kelvin', days: 1 }],
  ])('extracts arguments from %j and converts them to the types in the schema', async (text, args) => {
    expect(await callsOf(chatRequest(`get_weather ${text}`, both))).toEqual([['get_weather', args]])
  })

  test('fills in the properties of nested objects and arrays', async () => {
    const place = { type: 'object', properties: { name: { type: ['null', 'string'] } }, required: ['name'] }
    const schema = {
      type: 'object',
      properties: {
        from: { $ref: '#/$defs/place' },
        stops: { type: 'array', items: { $ref: '#/$defs/place' } },
      },
      required: ['from', 'stops'],
      $defs: { place },
    }
    const body = chatRequest('route name=Rome', { tools: [tool('route', schema)] })
    expect(await callsOf(body)).toEqual([['route', { from: { name: 'Rome' }, stops: [{ name: 'Rome' }] }]])
  })

  test("streams a call's id, type and name only in its first delta", async () => {
    const chunks = await streamChunks(chatRequest('get_weather get_time', both))
    const deltas = chunks.map((chunk) => chunk.choices[0]?.delta)
    expect(deltas[0]).toEqual({ role: 'assistant', content: null })
    expect(deltas.at(-1)).toEqual({})
    const calls = deltas.slice(1, -1).map((delta) => delta?.tool_calls?.[0])
    expect(deltas.slice(1, -1).every((delta) => delta?.tool_calls?.length === 1)).toBe(true)
    const named = calls.filter((call) => call?.id !== undefined)
    expect(named).toEqual([
      {
        index: 0,
        id: expect.any(String),
        type: 'function',
        function: { name: 'get_weather', arguments: '' },
      },
      { index: 1, id: expect.any(String), type: 'function', function: { name: 'get_time', arguments: '' } },
    ])
    for (const call of calls.filter((other) => other?.id === undefined)) {
      expect(call).toEqual({ index: expect.any(Number), function: { arguments: expect.any(String) } })
    }
    expect(joinChoice(chunks, 0)).toMatchObject({
      calls: [{ arguments: JSON.stringify(filled) }, { arguments: '{}' }],
      finish: 'tool_calls',
    })
  })

  test('quotes all tool results and does not call tools again', async () => {
    const results = [
      { role: 'tool', tool_call_id: 'a', content: '21 °C' },
      { role: 'tool', tool_call_id: 'b', content: [{ type: 'text', text: 'noon' }] },
    ]
    const messages = [
      { role: 'user', content: 'get_weather [[tool:get_time]]' },
      { role: 'tool', tool_call_id: 'old', content: 'old' },
      { role: 'assistant', content: null, tool_calls: [] },
      ...results,
    ]
    expect(await firstChoiceOf({ messages, ...both, tool_choice: 'required' })).toMatchObject({
      message: { content: 'The tool answered: 21 °C\nThe tool answered: noon' },
      finish_reason: 'stop',
    })
  })
})
