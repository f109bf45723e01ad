// The wires by name.
import * as anthropic from './anthropic.mjs'
import * as ollama from './ollama.mjs'
import * as openai from './openai.mjs'

export const wires = {openai, anthropic, ollama}
