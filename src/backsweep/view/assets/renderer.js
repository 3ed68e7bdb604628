// Points and lines by WebGL. States are in two textures, so that new colours or positions are one upload without new buffers.
const WIDTH = 1024;

const FETCH = `#version 300 es
precision highp float;
uniform highp sampler2D places;
uniform sampler2D colours;
uniform vec2 centre;
uniform vec2 scale;
uniform float ratio;
ivec2 texel(int state) { return ivec2(state % ${WIDTH}, state / ${WIDTH}); }
vec4 onScreen(vec2 place) { return vec4((place - centre) * scale, 0.0, 1.0); }
`;

const EDGE_VERTEX = `${FETCH}
layout(location = 0) in uvec2 edge;
layout(location = 1) in float trunk;
uniform float strength;
out vec4 colour;
void main() {
  ivec2 at = texel(int(gl_VertexID == 0 ? edge.x : edge.y));
  vec4 own = texelFetch(colours, at, 0);
  vec4 other = texelFetch(colours, texel(int(gl_VertexID == 0 ? edge.y : edge.x)), 0);
  gl_Position = onScreen(texelFetch(places, at, 0).xy);
  colour = vec4(own.rgb, min(own.a, other.a) * strength * (trunk > 0.5 ? 1.0 : 0.35));
}`;

const EDGE_FRAGMENT = `#version 300 es
precision highp float;
in vec4 colour;
out vec4 result;
void main() { result = vec4(colour.rgb * colour.a, colour.a); }`;

const POINT_VERTEX = `${FETCH}
uniform float radius;
uniform int chosen;
out vec4 colour;
out float kind;
out float size;
out float picked;
void main() {
  ivec2 at = texel(gl_VertexID);
  vec4 place = texelFetch(places, at, 0);
  colour = texelFetch(colours, at, 0);
  kind = place.z;
  picked = gl_VertexID == chosen ? 1.0 : 0.0;
  float grow = (kind > 1.5 ? 2.1 : 1.0) * place.w * (picked > 0.5 ? 1.6 : 1.0);
  size = max(radius * grow, kind > 1.5 ? 4.0 : 0.55) * 2.0 * ratio + 3.0;
  gl_PointSize = size;
  gl_Position = onScreen(place.xy);
}`;

const POINT_FRAGMENT = `#version 300 es
precision highp float;
uniform vec3 endColour;
uniform vec3 inkColour;
in vec4 colour;
in float kind;
in float size;
in float picked;
out vec4 result;
void main() {
  vec2 at = (gl_PointCoord - 0.5) * size;
  float edge = size * 0.5 - 1.5;
  // Ends are diamonds; all others are discs.
  float away = kind > 1.5 ? abs(at.x) + abs(at.y) : length(at);
  float cover = clamp(edge - away + 0.5, 0.0, 1.0);
  if (cover <= 0.0) discard;
  vec3 paint = colour.rgb;
  float rim = clamp(away - edge + max(1.5, edge * 0.28) + 0.5, 0.0, 1.0);
  if (picked > 0.5) paint = mix(paint, inkColour, rim);
  else if (kind > 1.5) paint = mix(paint, endColour, rim);
  else if (kind > 0.5 && edge > 1.8) paint = mix(paint, inkColour, rim * 0.8);
  float alpha = cover * colour.a;
  result = vec4(paint * alpha, alpha);
}`;

function program(gl, vertex, fragment) {
  const made = gl.createProgram();
  for (const [type, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(type);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(made));
  return { made, at: (name) => gl.getUniformLocation(made, name) };
}

class Renderer {
  constructor(canvas) {
    const gl = canvas.getContext("webgl2", { antialias: true, premultipliedAlpha: true, preserveDrawingBuffer: true });
    if (!gl) throw new Error("this browser has no WebGL 2, which the drawing needs");
    this.gl = gl;
    this.canvas = canvas;
    this.count = this.edges = 0;
    this.lines = program(gl, EDGE_VERTEX, EDGE_FRAGMENT);
    this.points = program(gl, POINT_VERTEX, POINT_FRAGMENT);
    this.places = this.texture();
    this.colours = this.texture();
    this.array = gl.createVertexArray();
    this.empty = gl.createVertexArray();
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  texture() {
    const gl = this.gl, made = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, made);
    for (const name of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, name, gl.NEAREST);
    return made;
  }

  // Four numbers per state: x, y, kind (0 plain, 1 start, 2 end) and relative size.
  setPlaces(values, count) {
    const gl = this.gl, height = Math.max(1, Math.ceil(count / WIDTH));
    const padded = new Float32Array(WIDTH * height * 4);
    padded.set(values.subarray(0, count * 4));
    gl.bindTexture(gl.TEXTURE_2D, this.places);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA32F, WIDTH, height, 0, gl.RGBA, gl.FLOAT, padded);
    this.count = count;
  }

  // Four bytes per state.
  setColours(values, count) {
    const gl = this.gl, height = Math.max(1, Math.ceil(count / WIDTH));
    const padded = new Uint8Array(WIDTH * height * 4);
    padded.set(values.subarray(0, count * 4));
    gl.bindTexture(gl.TEXTURE_2D, this.colours);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, WIDTH, height, 0, gl.RGBA, gl.UNSIGNED_BYTE, padded);
  }

  setEdges(edge, trunk) {
    const gl = this.gl;
    gl.bindVertexArray(this.array);
    for (const buffer of this.buffers || []) gl.deleteBuffer(buffer);
    this.buffers = [gl.createBuffer(), gl.createBuffer()];
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[0]);
    gl.bufferData(gl.ARRAY_BUFFER, edge, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribIPointer(0, 2, gl.UNSIGNED_INT, 0, 0);
    gl.vertexAttribDivisor(0, 1);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[1]);
    gl.bufferData(gl.ARRAY_BUFFER, trunk, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(1);
    gl.vertexAttribPointer(1, 1, gl.UNSIGNED_BYTE, false, 0, 0);
    gl.vertexAttribDivisor(1, 1);
    this.edges = edge.length / 2;
  }

  draw(camera, look) {
    const gl = this.gl, ratio = window.devicePixelRatio || 1;
    const width = Math.round(this.canvas.clientWidth * ratio), height = Math.round(this.canvas.clientHeight * ratio);
    if (this.canvas.width !== width || this.canvas.height !== height) Object.assign(this.canvas, { width, height });
    gl.viewport(0, 0, width, height);
    gl.clearColor(...look.page, 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (!this.count) return;
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, this.places);
    gl.activeTexture(gl.TEXTURE1);
    gl.bindTexture(gl.TEXTURE_2D, this.colours);
    const scale = [2 * camera.scale / this.canvas.clientWidth, -2 * camera.scale / this.canvas.clientHeight];
    for (const one of [this.lines, this.points]) {
      gl.useProgram(one.made);
      gl.uniform1i(one.at("places"), 0);
      gl.uniform1i(one.at("colours"), 1);
      gl.uniform2f(one.at("centre"), camera.x, camera.y);
      gl.uniform2fv(one.at("scale"), scale);
      gl.uniform1f(one.at("ratio"), ratio);
      if (one === this.lines) {
        gl.uniform1f(one.at("strength"), look.strength);
        gl.bindVertexArray(this.array);
        if (this.edges) gl.drawArraysInstanced(gl.LINES, 0, 2, this.edges);
      } else {
        gl.uniform1f(one.at("radius"), look.radius);
        gl.uniform3fv(one.at("endColour"), look.end);
        gl.uniform3fv(one.at("inkColour"), look.ink);
        gl.uniform1i(one.at("chosen"), look.chosen);
        gl.bindVertexArray(this.empty);
        gl.drawArrays(gl.POINTS, 0, this.count);
      }
    }
    gl.activeTexture(gl.TEXTURE0);
  }
}
