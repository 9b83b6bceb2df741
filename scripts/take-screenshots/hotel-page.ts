/** Renders a hotel's website, on which screenshots show the widget. */

interface Room {
  readonly name: string
  readonly about: string
  readonly price: string
  readonly colors: readonly [sky: string, sea: string, sand: string]
}

const rooms: readonly Room[] = [
  {
    name: 'Garden room',
    about: 'Ground floor, terrace, 24 m²',
    price: '€98',
    colors: ['#dcebd8', '#8fb996', '#5a8f69'],
  },
  {
    name: 'Sea view room',
    about: 'First floor, balcony, 28 m²',
    price: '€129',
    colors: ['#d6ecf3', '#69b3c4', '#e9d8b4'],
  },
  {
    name: 'Family suite',
    about: 'Two bedrooms, kitchen, 52 m²',
    price: '€184',
    colors: ['#fbe6cf', '#e7a977', '#c9784d'],
  },
]

/** Returns the page's HTML with the widget of an agent, which is open if `isOpen` is true. */
export function renderHotelPage(origin: string, agentKey: string, options: object = {}): string {
  const config = JSON.stringify({ apiKey: agentKey, ...options }).replaceAll('<', '\\u003c')
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Hotel Seaview</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>${style}</style></head>
<body>
<header><strong>Hotel Seaview</strong><nav><a>Rooms</a><a>Restaurant</a><a>Spa</a><a>Offers</a><a>Getting here</a></nav></header>
<section class="hero">${scene}<div><p>On the coast since 1924</p><h1>Wake up to<br>the sound of the sea</h1><a class="book">Book a room</a></div></section>
<main><h2>Our rooms</h2><div class="rooms">${rooms.map(renderRoom).join('')}</div></main>
<script>window.ParleyChatConfig = ${config}</script>
<script async src="${origin}/embed/parley.js"></script>
</body></html>`
}

function renderRoom({ name, about, price, colors: [sky, sea, sand] }: Room): string {
  return `<article><svg viewBox="0 0 300 150" preserveAspectRatio="xMidYMid slice" aria-hidden="true">
<rect width="300" height="150" fill="${sky}"/><circle cx="228" cy="46" r="20" fill="#fff" opacity=".8"/>
<path d="M0 84q75-26 150 0t150 0v66H0Z" fill="${sea}"/><path d="M0 122q90-22 180 0t120 0v28H0Z" fill="${sand}"/></svg>
<h3>${name}</h3><p>${about}</p><p class="price">from <b>${price}</b> per night</p></article>`
}

const scene = `<svg viewBox="0 0 1280 420" preserveAspectRatio="xMidYMax slice" aria-hidden="true">
<defs><linearGradient id="sky" x2="0" y2="1"><stop stop-color="#8cc6d9"/><stop offset=".7" stop-color="#f6e3c5"/></linearGradient></defs>
<rect width="1280" height="420" fill="url(#sky)"/><circle cx="880" cy="210" r="54" fill="#fff3d6"/>
<path d="M0 262q170-90 360-24 150 40 330 24Z" fill="#6f9f8d"/><path d="M0 262h1280v158H0Z" fill="#2f8a93"/>
<path d="M0 300q80-14 160 0t160 0 160 0 160 0 160 0 160 0 160 0 160 0v120H0Z" fill="#23747f"/>
<path d="M0 352q80-14 160 0t160 0 160 0 160 0 160 0 160 0 160 0 160 0v68H0Z" fill="#195e69"/>
<path d="M700 262l46-62 4 62Zm54 0 0-50 34 50Z" fill="#fff"/><path d="M690 268h108l-14 16h-78Z" fill="#7c4a33"/></svg>`

const style = `*{box-sizing:border-box;margin:0}body{font:16px/1.5 Georgia,"Liberation Serif",serif;color:#23343a;background:#fbf9f5}
header{display:flex;justify-content:space-between;align-items:center;padding:18px 48px;background:#fff}
header strong{font-size:22px;letter-spacing:.02em}nav{display:flex;gap:28px;font-size:15px}
.hero{position:relative;height:340px;overflow:hidden}.hero svg{position:absolute;inset:0;width:100%;height:100%}
.hero div{position:absolute;inset:56px auto auto 48px}.hero p{font-size:15px}.hero h1{margin:8px 0 22px;font-size:44px;line-height:1.12;font-weight:400}
.book{display:inline-block;padding:11px 22px;border-radius:4px;background:#0f5d66;color:#fff;font-size:15px}
main{padding:34px 48px 60px}h2{margin-bottom:18px;font-weight:400;font-size:28px}
.rooms{display:grid;grid-template-columns:repeat(auto-fit,minmax(230px,1fr));gap:24px}
article{overflow:hidden;border-radius:6px;background:#fff;box-shadow:0 1px 3px #0002}article svg{display:block;width:100%;height:150px}
article h3,article p{padding:0 16px}article h3{padding-top:12px;font-weight:400;font-size:20px}article p{font-size:14px;color:#5b6b70}article .price{padding-bottom:16px}
@media(max-width:640px){header,main{padding-inline:20px}nav{display:none}.hero div{inset-inline-start:20px}.hero h1{font-size:32px}}`
